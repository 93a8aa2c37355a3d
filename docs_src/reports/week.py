import bespeak

AGENT = "0a3f" * 16

with bespeak.connect_sync("agtp://127.0.0.1", agent_id=AGENT) as studio:
    studio.call("LOG", "/", event_type="shoot", data={"hours": 3})
    studio.call("LOG", "/", event_type="edit", data={"hours": 5}, severity="warning")

    receipt = studio.call("REPORT", "/", report_type="log", scope="7d", recipient=AGENT, format="markdown")
    document = studio.call("FETCH", "/documents/{document_id}", document_id=receipt["document_id"])
    print(document["content_type"])
    print(document["text"])
