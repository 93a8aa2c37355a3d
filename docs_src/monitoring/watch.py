import bespeak

AGENT = "0a3f" * 16

with bespeak.connect_sync("agtp://127.0.0.1", agent_id=AGENT) as desk:
    item = desk.call("REGISTER", "/", entity_type="channel", data={"channel": "news"})["entity_id"]
    monitor = desk.call("MONITOR", "/", target=item, events=["state_changed"], callback="inbox")
    print(monitor["events"], monitor["interval"])

    desk.call("CANCEL", "/", target_id=item)
    while not (news := desk.call("QUERY", "/messages")["messages"]):
        pass
    content = news[0]["content"]
    print(content["event"], content["previous"], content["value"])
