from datetime import UTC, datetime, timedelta

import bespeak

ANN, BEN, EVE = "0a3f" * 16, "7a4e" * 16, "51c9" * 16


def inbox(agent: bespeak.SyncServiceClient) -> list[str]:
    found = agent.call("QUERY", "/messages", state="unread")["messages"]
    return [f"{message['kind']}: {message['content']}" for message in found]


with (
    bespeak.connect_sync("agtp://127.0.0.1", agent_id=ANN) as ann,
    bespeak.connect_sync("agtp://127.0.0.1", agent_id=BEN) as ben,
):
    sent = ann.call("NOTIFY", "/", recipient=BEN, content="Lunch at noon?", urgency="background")
    print(inbox(ben))

    ben.call("REPLY", "/", in_reply_to=sent["notification_id"], content="Gladly.")
    print(inbox(ann))

    alert = ann.call(
        "ALERT",
        "/",
        recipient=BEN,
        severity="critical",
        message="Water in the cellar",
        acknowledge_by=(datetime.now(UTC) + timedelta(minutes=5)).isoformat(),
        escalation_path=[EVE],
    )
    done = ben.call("CONFIRM", "/", target_id=alert["alert_id"], status="accepted")
    print(done["status"])

    ben.call("REGISTER", "/", entity_type="subscription", data={"channel": "menu"})
    news = ann.call("PUBLISH", "/", channel="menu", content={"today": "soup"})
    print(news["status"], news["subscribers"])
