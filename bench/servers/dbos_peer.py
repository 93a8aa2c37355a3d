"""Three-step workflows in DBOS. Usage: dbos_peer.py DATABASE_URL SECONDS CONCURRENT; prints one line of JSON."""

import asyncio
import json
import sys
import time

from dbos import DBOS


@DBOS.step()
async def book(guest: str) -> dict[str, str]:
    """Do nothing, as the endpoints of the other side do."""
    return {"reservation_id": guest}


@DBOS.workflow()
async def trip(guest: str) -> list[dict[str, str]]:
    """Run three steps."""
    return [await book(guest), await book(guest), await book(guest)]


async def main(url: str, seconds: float, concurrent: int) -> None:
    """Run workflows for some seconds, and print how many there were."""
    DBOS(config={"name": "bench", "system_database_url": url, "log_level": "ERROR", "run_admin_server": False})
    DBOS.launch()
    await trip("Ann")
    done, end = 0, time.perf_counter() + seconds

    async def client() -> None:
        nonlocal done
        while time.perf_counter() < end:
            await trip("Ann")
            done += 1

    begun, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(client() for _ in range(concurrent)))
    took, used = time.perf_counter() - begun, time.process_time() - cpu
    print(json.dumps({"rate": done / took, "cpu_us": used / done * 1e6}), flush=True)
    DBOS.destroy()


if __name__ == "__main__":
    work = main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]))
    try:
        import uvloop
    except ImportError:
        asyncio.run(work)
    else:
        uvloop.run(work)
