"""Plans for PLAN: calls that reach a goal, composed by the planner of negotiation."""
