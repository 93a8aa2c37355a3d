import bespeak

AGENT = "0a3f" * 16

with bespeak.connect_sync("agtp://127.0.0.1", agent_id=AGENT, scopes=["sales:read"]) as shop:
    week = "2026-11-02/2026-11-09"
    receipt = shop.call("REPORT", "/", report_type="weekly-sales", scope=week, recipient=AGENT, format="markdown")
    document = shop.call("FETCH", "/documents/{document_id}", document_id=receipt["document_id"])
    print(document["text"])
