import bespeak

AGENT = "0a3f" * 16
GOAL = {"path": "/bookings/{booking_id}/guest", "output": ["name"]}

with bespeak.connect_sync("agtp://127.0.0.1", agent_id=AGENT) as inn:
    plan = inn.call("PLAN", "/", goal=GOAL, constraints={"given": {"booking_id": "b-1"}, "impact": "informational"})
    for step in plan["ordered_steps"]:
        print(step["method"], step["path"], step["parameters"])
    print(plan["estimated_cost"], plan["confidence"], plan["assumptions"])

    done = inn.call("EXECUTE", "/", plan_id=plan["plan_id"])
    print(done["status"], done["output"])
