"""Lists: drivers, columns, filters, orders and limits."""

from __future__ import annotations

from tests.extensions.negotiation.planner.contracts import contracts
from tests.extensions.negotiation.planner.services import approved, doubtful, refused


def test_a_bound_becomes_a_filter_over_the_list() -> None:
    rooms = approved("FIND /rooms/cheap max_price:n -> rooms[].id rooms[].price:n").recipe.output["rooms"].to_json()
    assert rooms["where"] == [{"field": "price", "op": "lte", "value": {"kind": "proposal", "value": "max_price"}}]
    assert set(rooms["select"]) == {"id", "price"}


def test_a_filter_that_the_endpoint_has_is_left_to_it() -> None:
    found = approved("LIST /hotels city -> hotels[].name")
    assert found.recipe.steps[0].input["city"].value == "city"
    assert found.recipe.output["hotels"].where == ()


def test_columns_are_renamed_and_nested_as_proposed() -> None:
    found = approved("LIST /rooms -> items[].room.room_id items[].room_price:n")
    select = found.recipe.output["items"].to_json()["select"]
    assert select["room"]["select"]["room_id"] == {"kind": "item", "value": "id"}
    assert select["room_price"] == {"kind": "item", "value": "price"}


def test_a_missing_column_is_fetched_for_each_row() -> None:
    found = approved("LIST /bookings/rooms guest_id -> bookings[].id bookings[].room_price:n")
    step = found.recipe.steps[1]
    assert step.for_each is not None
    assert (step.for_each.value, step.input["id"].value, step.on_failure) == ("step_1.bookings", "room_id", "fail")
    assert found.recipe.output["bookings"].to_json()["select"]["room_price"] == {
        "kind": "item",
        "value": "output.price",
    }


def test_two_lists_are_joined_over_a_shared_id() -> None:
    shop = contracts("""
LIST /orders -> orders[].id orders[].customer_id orders[].total:n
LIST /customers -> customers[].id customers[].name
""")
    found = approved("LIST /orders/customers -> orders[].id orders[].customer_name", shop)
    name = found.recipe.output["orders"].to_json()["select"]["customer_name"]
    assert (name["value"], name["get"], name["pick"]) == ("step_2.customers", "name", "only")
    assert name["where"] == [{"field": "id", "op": "eq", "value": {"kind": "item", "value": "customer_id"}}]


def test_an_order_and_a_limit_are_applied_to_the_rows() -> None:
    found = approved("LIST /rooms sort=price|-price limit:i -> rooms[].id rooms[].price:n")
    rooms = found.recipe.output["rooms"]
    assert rooms.sort is not None
    assert rooms.limit is not None
    assert (rooms.sort.value, rooms.limit.value) == ("sort", "limit")


def test_an_order_by_something_that_rows_do_not_have_is_refused() -> None:
    assert refused("LIST /rooms sort=price|stars -> rooms[].id rooms[].price:n").misses[0].field == "sort"


def test_a_local_filter_reads_all_pages() -> None:
    found = approved("LIST /bookings/large guest_id min_total:n -> bookings[].id bookings[].total:n")
    pages = found.recipe.steps[0].pages
    assert pages is not None
    assert pages.cursor == "next_cursor"


def test_a_local_filter_over_pages_that_cannot_be_read_is_only_a_suggestion() -> None:
    shop = contracts("LIST /orders start_at?:i -> orders[].id orders[].total:n")
    assert "pages" in doubtful("LIST /orders/large min_total:n -> orders[].id orders[].total:n", shop).doubts[0]


def test_rows_are_selected_by_what_a_key_leads_to() -> None:
    found = approved("LIST /guests/bookings guest_email:e -> bookings[].id")
    assert [str(one) for one in found.endpoints] == ["LIST /guests", "LIST /bookings"]


def test_a_bound_of_another_type_is_no_filter() -> None:
    assert refused("FIND /rooms/cheap max_price:b -> rooms[].id rooms[].price:n").misses[0].field == "max_price"


DATA = contracts("""
QUERY /data/transaction-history account_id? booked?:d booked_from?:d booked_to?:d amount_min?:n amount_max?:n
  text_contains? order?=booked|-booked limit:i==100 cursor? ->
  rows[].id rows[].account_id rows[].booked:d rows[].amount:n rows[].text next_cursor?
QUERY /data/customer-profile customer_id? limit:i==100 cursor? ->
  rows[].customer_id rows[].name rows[].email:e next_cursor?
""")


def test_a_data_class_is_read_with_its_own_filters() -> None:
    found = approved(
        "RETRIEVE /account/{id}/transactions booked_from?:d min_amount?:n sort?=booked|-booked "
        "-> transactions[].amount:n",
        DATA,
    )
    sent = {name: source.value for name, source in found.recipe.steps[0].input.items()}
    assert sent == {"account_id": "id", "booked_from": "booked_from", "amount_min": "min_amount", "order": "sort"}
    assert found.recipe.output["transactions"].where == ()


def test_a_record_of_a_data_class_is_read_by_its_key() -> None:
    found = approved("RETRIEVE /customers/{customer_id}/profile -> name email:e", DATA)
    assert found.recipe.output["name"].pick == "only"


def test_rows_are_filtered_before_they_are_cut() -> None:
    found = approved("RETRIEVE /account/{id}/transactions booked_after:d limit:i -> transactions[].amount:n", DATA)
    assert set(found.recipe.steps[0].input) == {"account_id"}
    assert found.recipe.output["transactions"].limit is not None


def test_a_limit_alone_is_left_to_the_endpoint() -> None:
    found = approved("RETRIEVE /account/{id}/transactions limit:i -> transactions[].amount:n", DATA)
    assert found.recipe.steps[0].input["limit"].value == "limit"
    assert found.recipe.steps[0].pages is None


def test_a_bound_of_dates_may_mean_the_only_date_of_the_rows() -> None:
    where = approved("RETRIEVE /account/{id}/transactions until:d -> transactions[].amount:n", DATA).recipe.output
    assert [(one.left.value, one.op) for one in where["transactions"].where] == [("booked", "lte")]


def test_a_list_under_a_name_that_nobody_knows_is_only_a_suggestion() -> None:
    assert "parcels" in doubtful("LIST /rooms -> parcels[].id parcels[].price:n").doubts[0]


def test_a_key_that_is_given_is_not_looked_up_to_use_another_input() -> None:
    service = contracts("""
LIST /teams/{team_id}/channels -> channels[].id channels[].team_id
LIST /users/{user_id}/teams -> teams[].id teams[].name
FETCH /teams/name/{name} -> id name
""")
    refused("LIST /users/{user_id}/teams/{team_id}/channels -> channels[].id", service)


def test_a_list_that_is_a_thing_of_the_service_is_not_read_as_rows_of_another() -> None:
    service = contracts("""
LIST /campaigns -> results[].id:i results[].name
FETCH /lists/{list_id} -> id:i name
""")
    refused("FETCH /campaigns/{id} id:i -> lists[].id:i lists[].name", service)


def test_the_verb_and_the_noun_choose_the_deed() -> None:
    found = approved("~CANCEL /bookings booking_id -> status")
    assert [str(one) for one in found.endpoints] == ["CANCEL /bookings/{id}"]


def test_the_key_of_a_deed_may_be_looked_up() -> None:
    found = approved("!BOOK /rooms guest_email:e room_id arrival:d departure:d -> booking_id")
    assert [str(one) for one in found.endpoints] == ["LIST /guests", "BOOK /rooms"]
    assert found.impact == "irreversible"


def test_a_field_is_never_a_reason_for_a_deed() -> None:
    refused("FETCH /rooms guest_id room_id arrival:d departure:d -> booking_id")


def test_an_unknown_deed_names_the_noun() -> None:
    assert "PAINT" in refused("~PAINT /rooms/{id} -> id").misses[0].reason


def test_a_deed_whose_inputs_are_unknown_is_named_with_them() -> None:
    service = contracts("!PAY /invoices/{id} iban -> payment_id")
    found = refused("!PAY /invoices/{id} -> payment_id", service).misses[0]
    assert "`iban`" in found.reason
    assert str(found.nearest) == "PAY /invoices/{id}"


def test_a_deed_is_named_with_the_key_that_nothing_given_chooses() -> None:
    service = contracts(
        "!BOOK /room guest_id room_id arrival:d -> reservation_id\n"
        "QUERY /rooms arrival?:d -> rooms[].room_id rooms[].price:n"
    )
    found = refused("!BOOK /room/cheapest guest_id arrival:d -> reservation_id", service).misses[0]
    assert (found.reason, str(found.nearest)) == ("`BOOK /room` needs `room_id`.", "BOOK /room")


def test_a_deed_with_more_impact_than_claimed_is_named() -> None:
    found = refused("BOOK /rooms guest_id room_id arrival:d departure:d -> booking_id").misses[0]
    assert (found.field, str(found.nearest)) == ("semantic.impact", "BOOK /rooms")


def test_a_deed_on_another_thing_is_only_the_nearest() -> None:
    assert str(refused("!BOOK /guests guest_id -> booking_id").misses[0].nearest) == "BOOK /rooms"


def test_a_field_that_nothing_yields_is_named() -> None:
    miss = refused("FETCH /rooms/{id} -> price:n owner_name").misses[0]
    assert (miss.field, miss.nearest) == ("owner_name", None)


def test_a_field_of_another_type_names_the_endpoint_that_has_it() -> None:
    miss = refused("FETCH /rooms/{id} -> price:s").misses[0]
    assert "another type" in miss.reason
    assert miss.nearest is not None


def test_a_field_that_another_noun_has_names_the_endpoint() -> None:
    miss = refused("FETCH /rooms/{id} -> stars:i").misses[0]
    assert str(miss.nearest) == "FETCH /hotels/{id}"


def test_a_column_of_a_list_is_named_with_its_list() -> None:
    assert refused("LIST /rooms -> rooms[].id rooms[].owner").misses[0].field == "rooms[].owner"


def test_the_nearest_endpoint_is_about_the_noun_and_yields_most_of_what_is_wanted() -> None:
    service = contracts("""
LIST /alarms -> alarms[].name alarms[].stars:i
FETCH /hotels/{id} -> id name stars:i
FETCH /hotels/{id}/awards -> stars:s
""")
    miss = refused("FETCH /hotels/{id} -> name stars:b", service).misses[0]
    assert str(miss.nearest) == "FETCH /hotels/{id}"


def test_a_role_that_nothing_has_is_not_called_another_type() -> None:
    miss = refused("FETCH /bookings/{id} -> previous_room_id").misses[0]
    assert "No usable endpoint yields" in miss.reason


def test_one_call_that_yields_everything_is_enough() -> None:
    assert len(approved("FETCH /rooms/{id} -> price:n beds:i kind=single|double").endpoints) == 1


def test_fields_of_two_things_come_from_two_calls() -> None:
    found = approved("FETCH /rooms/{id}/hotel -> room_price:n hotel_name hotel_stars:i")
    assert [str(one) for one in found.endpoints] == ["FETCH /rooms/{id}", "FETCH /hotels/{id}"]


def test_a_given_id_may_be_repeated_in_the_result() -> None:
    found = approved("FETCH /guests/{guest_id} -> guest_id phone")
    assert len(found.endpoints) == 1


def test_a_result_that_only_repeats_the_input_is_no_plan() -> None:
    assert refused("FETCH /guests/{guest_id}/key -> guest_id").misses
