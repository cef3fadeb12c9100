"""polypath.aio: associations between endpoints of this process, over sockets of the loopback
interface."""

import asyncio
import errno
import itertools
import random
import stat
import threading
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from polypath import aio

# Seconds after which a test has hung.
PATIENCE = 30
# Loopback addresses of these tests.
FIRST, SECOND = "127.0.94.1", "127.0.94.2"


def run(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(main, PATIENCE))


def of(endpoint: aio.Endpoint) -> list[str]:
    """The addresses of an endpoint, as connect takes them."""
    return [f"{host}:{port}" for host, port in endpoint.addresses]


@asynccontextmanager
async def pair(
    *addresses: str, **options: Any
) -> AsyncIterator[tuple[aio.Association, aio.Association]]:
    """The two ends of an association."""
    addresses = addresses or (FIRST,)
    async with (
        aio.Endpoint(*addresses, listen=True, **options) as server,
        aio.Endpoint(*addresses, **options) as client,
    ):
        near, far = await asyncio.gather(
            client.connect(*of(server), port=server.port), server.accept()
        )
        assert far is not None
        yield near, far


def test_messages_and_their_streams() -> None:
    async def main() -> None:
        async with pair(settings={"receive_buffer": "4 MiB"}) as (near, far):
            await near.send(b"hello", stream=3, ppid=7)
            await near.send(bytearray(b"to all"), unordered=True)
            await near.drained()
            messages = [await far.receive(), await far.receive()]
            assert aio.Message(b"hello", 3, 7, unordered=False, end=True) in messages
            assert aio.Message(b"to all", 0, 0, unordered=True, end=True) in messages
            await far.send(memoryview(b"one"), stream=1)
            await far.send(b"two", stream=2)
            second = await near.receive(stream=2)
            first = await near.receive(stream=1)
            assert (first and first.payload, second and second.payload) == (b"one", b"two")
            # Larger than the receive buffer: in pieces.
            large = random.Random(1).randbytes(9_000_000)
            sending = asyncio.create_task(near.send(large))
            pieces: list[aio.Message] = []
            while not pieces or not pieces[-1].end:
                piece = await far.receive()
                assert piece is not None
                pieces.append(piece)
            await sending
            assert len(pieces) > 1
            assert b"".join(piece.payload for piece in pieces) == large
            await near.shutdown()
            assert await far.receive() is None
            assert await far.closed() == near.close_reason == "closed gracefully"

    run(main())


def test_an_iteration_ends_with_the_association() -> None:
    async def main() -> None:
        async with aio.Endpoint(FIRST, listen=True) as server:

            async def client() -> None:
                async with await aio.connect(*of(server), port=server.port, bind=[FIRST]) as near:
                    for number in range(100):
                        await near.send(str(number).encode())

            sending = asyncio.create_task(client())
            async for far in server:
                found = [int(message.payload) async for message in far]
                assert found == list(range(100))
                break
            await sending

    run(main())


def test_a_cancelled_receive_loses_nothing() -> None:
    async def main() -> None:
        chance = random.Random(3)
        async with pair() as (near, far):

            async def send() -> None:
                for number in range(500):
                    await near.send(str(number).encode())
                    await asyncio.sleep(chance.uniform(0, 0.002))

            sending = asyncio.create_task(send())
            found: list[int] = []
            cancelled = 0
            while len(found) < 500:
                try:
                    async with asyncio.timeout(chance.uniform(0, 0.001)):
                        message = await far.receive()
                except TimeoutError:
                    cancelled += 1
                    continue
                assert message is not None
                found.append(int(message.payload))
            await sending
            assert found == list(range(500))
            assert cancelled > 50

    run(main())


def test_a_cancelled_send_sends_nothing() -> None:
    async def main() -> None:
        async with pair() as (near, far):
            sent = 0
            for number in itertools.count():
                sending = asyncio.create_task(near.send(number.to_bytes(4) + bytes(400_000)))
                done, _ = await asyncio.wait([sending], timeout=0.3)
                if not done:
                    break
                sent += 1
            assert sent > 4
            sending.cancel()
            with pytest.raises(asyncio.CancelledError):
                await sending
            numbers = []
            for _ in range(sent):
                message = await far.receive()
                assert message is not None
                numbers.append(int.from_bytes(message.payload[:4]))
            await near.send(b"last")
            message = await far.receive()
            assert message is not None
            assert numbers == list(range(sent))
            assert message.payload == b"last"

    run(main())


def test_a_cancelled_accept_loses_no_association() -> None:
    async def main() -> None:
        async with aio.Endpoint(FIRST, listen=True) as server:
            for _ in range(5):
                accepting = asyncio.create_task(server.accept())
                await asyncio.sleep(0)
                connecting = asyncio.create_task(
                    aio.connect(*of(server), port=server.port, bind=[FIRST])
                )
                await asyncio.sleep(random.Random(5).uniform(0, 0.02))
                if accepting.cancel():
                    with pytest.raises(asyncio.CancelledError):
                        await accepting
                    far = await server.accept()
                else:
                    far = await accepting
                assert far is not None
                async with await connecting as near:
                    await near.send(b"x")
                    assert await far.receive() is not None

    run(main())


def test_a_cancelled_connect_gives_up() -> None:
    async def main() -> None:
        # A socket that replies to nothing.
        silent, _ = await asyncio.get_running_loop().create_datagram_endpoint(
            asyncio.DatagramProtocol, local_addr=(FIRST, 0)
        )
        port = silent.get_extra_info("sockname")[1]
        async with aio.Endpoint(FIRST) as client:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(client.connect(f"{FIRST}:{port}"), 0.3)
            # The endpoint waits for no association.
            await asyncio.wait_for(client.close(), 5)
        silent.close()

    run(main())


def test_a_cancelled_connect_gives_up_during_the_proof_of_a_secret() -> None:
    async def main() -> None:
        async with aio.Endpoint(FIRST, listen=True) as silent:
            connecting = asyncio.create_task(
                aio.connect(
                    *of(silent), port=silent.port, bind=[FIRST], secret="correct horse battery"
                )
            )
            far = await silent.accept()
            assert far is not None
            assert await far.receive() is not None
            connecting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await connecting
            with pytest.raises(ConnectionResetError):
                await far.receive()

    run(main())


def test_a_cancelled_step_ends_no_iteration() -> None:
    async def main() -> None:
        async with aio.Endpoint(FIRST, listen=True) as server, aio.Endpoint(FIRST) as client:
            accepted = aiter(server)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(accepted), 0.01)
            near = await client.connect(*of(server), port=server.port)
            far = await anext(accepted)
            messages, events = aiter(far), far.events()
            for waiting in (messages, events):
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(anext(waiting), 0.2)
            await near.send(b"late")
            assert (await anext(messages)).payload == b"late"
            near.abort("over")
            assert "closed" in [event.kind async for event in events]
            with pytest.raises(ConnectionResetError):
                await anext(messages)
            await server.close()
            with pytest.raises(StopAsyncIteration):
                await anext(accepted)

    run(main())


def test_a_shutdown_goes_on_when_it_is_cancelled() -> None:
    async def main() -> None:
        async with pair() as (near, far):
            await near.send(bytes(1_000_000))
            ending = asyncio.create_task(near.shutdown())
            await asyncio.sleep(0)
            ending.cancel()
            with pytest.raises(asyncio.CancelledError):
                await ending
            assert sum([len(message.payload) async for message in far]) == 1_000_000
            assert await near.closed() == "closed gracefully"

    run(main())


def test_events_and_errors_of_an_abort() -> None:
    async def main() -> None:
        async with pair() as (near, far):
            events = far.events()
            waiting = asyncio.create_task(far.receive())
            near.abort("no more")
            with pytest.raises(ConnectionResetError, match="no more"):
                await waiting
            last = [event async for event in events][-1]
            assert last.kind == "closed"
            assert "no more" in last.text
            with pytest.raises(ConnectionAbortedError):
                await near.send(b"x")
            assert "no more" in await far.closed()

    run(main())


def test_a_block_that_raises_aborts() -> None:
    async def main() -> None:
        async with pair() as (near, far):
            with pytest.raises(ZeroDivisionError):
                async with near:
                    raise ZeroDivisionError
            with pytest.raises(ConnectionResetError):
                await far.receive()

    run(main())


def test_paths_have_statistics_and_events() -> None:
    async def main() -> None:
        async with pair(FIRST, SECOND) as (near, far):
            events = near.events()
            while {path.state for path in near.paths()} != {"active"}:
                await asyncio.sleep(0.01)
            first, second = near.paths()
            assert (first.primary, second.primary) == (True, False)
            assert {first.remote, second.remote} == {FIRST, SECOND}
            near.set_primary(1)
            assert near.current_path == 1
            seen = []
            async for event in events:
                seen.append(event)
                if event.kind == "primary-path":
                    break
            assert seen[-1].path == 1
            before = sum(path.bytes_sent for path in near.paths())
            await near.send(bytes(500_000))
            await near.drained()
            after = near.paths()
            assert sum(path.bytes_sent for path in after) - before > 500_000
            for path in after:
                assert path.rtt is not None
                assert 0 < path.rtt < 1
            assert near.statistics()["messages_sent"] == 1
            assert near.statistics()["bytes_unacknowledged"] == 0
            assert await far.receive() is not None
            with pytest.raises(ValueError, match="no path 7"):
                near.set_primary(7)

    run(main())


class Relay(asyncio.DatagramProtocol):
    """Passes datagrams between a client and a server, and keeps a copy."""

    def __init__(self, server: tuple[str, int]) -> None:
        self.server, self.client = server, ("", 0)
        self.seen = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self.seen += data
        if addr != self.server:
            self.client = addr
        self.transport.sendto(data, self.client if addr == self.server else self.server)


@pytest.mark.parametrize("options", [{}, {"encrypt": False}], ids=["default", "plain"])
def test_encryption_is_the_default(options: dict[str, bool]) -> None:
    async def main() -> None:
        secret = b"attack at dawn " * 20
        async with aio.Endpoint(FIRST, listen=True, **options) as server:  # type: ignore[arg-type]
            transport, relay = await asyncio.get_running_loop().create_datagram_endpoint(
                lambda: Relay(server.addresses[0]), local_addr=(FIRST, 0)
            )
            port = transport.get_extra_info("sockname")[1]
            near, far = await asyncio.gather(
                aio.connect(f"{FIRST}:{port}", port=server.port, bind=[FIRST], **options),  # type: ignore[arg-type]
                server.accept(),
            )
            assert far is not None
            await near.send(secret)
            message = await far.receive()
            assert message is not None
            assert message.payload == secret
            assert (secret in relay.seen) == (not options.get("encrypt", True))
            assert near.peer == server.fingerprint
            assert (near.peer is None) == (secret in relay.seen)
            await near.shutdown()
            transport.close()

    run(main())


def test_a_certificate_that_is_not_trusted() -> None:
    async def main() -> None:
        mine, other = aio.Identity(), aio.Identity()
        async with aio.Endpoint(
            FIRST, listen=True, identity=mine, trust=[other.fingerprint]
        ) as server:

            async def connect(**options: Any) -> aio.Association:
                return await aio.connect(*of(server), port=server.port, bind=[FIRST], **options)

            with pytest.raises(ConnectionRefusedError, match="another one than expected"):
                await connect(identity=other, trust=[other.fingerprint])
            with pytest.raises(ConnectionRefusedError, match="does not trust"):
                await connect(trust=[mine.fingerprint])
            async with await connect(identity=other, trust=[mine.fingerprint]) as near:
                far = await server.accept()
                assert far is not None
                assert (near.peer, far.peer) == (mine.fingerprint, other.fingerprint)

    run(main())


def test_a_secret_is_proved_by_both_sides() -> None:
    async def main() -> None:
        secret = "correct horse battery"
        async with (
            aio.Endpoint(FIRST, listen=True, secret=secret) as server,
            aio.Endpoint(FIRST, listen=True) as impostor,
        ):

            async def connect(to: aio.Endpoint, secret: str | None) -> aio.Association:
                return await aio.connect(*of(to), port=to.port, bind=[FIRST], secret=secret)

            accepting = asyncio.create_task(server.accept())
            with pytest.raises(ConnectionRefusedError, match="wrong"):
                await connect(server, "another secret")
            # A peer that proves nothing is not accepted.
            stranger = await connect(server, None)
            await stranger.send(b"let me in")
            with pytest.raises(ConnectionResetError):
                # The reason, and then the end.
                _ = [message async for message in stranger]
            assert not accepting.done()
            async with await connect(server, secret) as near:
                far = await accepting
                assert far is not None
                assert near.peer == server.fingerprint
                await near.send(b"proved")
                message = await far.receive()
                assert message is not None
                assert message.payload == b"proved"
            # Nor does a server without the secret pass for this one.
            connecting = asyncio.create_task(connect(impostor, secret))
            met = await impostor.accept()
            assert met is not None
            assert await met.receive() is not None
            met.abort()
            with pytest.raises(ConnectionError):
                await connecting

    run(main())


def test_an_identity_is_kept_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "identity.pem"
    first = aio.Identity.load(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert aio.Identity.load(file).fingerprint == first.fingerprint
    file.write_text("nonsense")
    with pytest.raises(ValueError, match="key"):
        aio.Identity.load(file)


def test_wrong_arguments() -> None:
    async def main() -> None:
        async with aio.Endpoint(FIRST, listen=True) as server, pair() as (near, _):
            with pytest.raises(OSError, match="in use") as caught:
                aio.Endpoint(FIRST, udp_port=server.addresses[0][1])
            assert caught.value.errno == errno.EADDRINUSE
            with pytest.raises(OSError, match=r"203\.0\.113\.1") as caught:
                aio.Endpoint("203.0.113.1")
            assert caught.value.errno == errno.EADDRNOTAVAIL
            with pytest.raises(ValueError, match="rto_min"):
                aio.Endpoint(FIRST, settings={"rto_min": "fast"})
            with pytest.raises(ValueError, match="no constant or policy"):
                aio.Endpoint(FIRST, settings={"rto_mni": "1s"})
            with pytest.raises(ValueError, match="allowed: "):
                aio.Endpoint(FIRST, profile="fastest")
            with pytest.raises(ValueError, match="needs encryption"):
                aio.Endpoint(FIRST, encrypt=False, secret="correct horse battery")
            with pytest.raises(ValueError, match="fewer than"):
                aio.Endpoint(FIRST, secret="short")
            with pytest.raises(ValueError, match="at least one byte"):
                await near.send(b"")
            with pytest.raises(ValueError, match="stream 9999 does not exist"):
                await near.send(b"x", stream=9999)
            with pytest.raises(ValueError, match="UDP port"):
                await aio.connect("host:http")
            with pytest.raises(ValueError, match="address"):
                await aio.connect()

    run(main())


def test_settings_reach_the_protocol() -> None:
    async def main() -> None:
        settings = {"outbound_streams": 5, "partial_reliability": True}
        async with pair(settings=settings) as (near, _):
            assert near.streams[0] == 5
            await near.send(b"soon", lifetime=0.5)
            await near.drained()

    run(main())


def test_loops_of_several_threads() -> None:
    """Each thread has an event loop, and all of them share the runtime of the sockets."""
    failures: list[BaseException] = []

    async def echo() -> None:
        async with pair() as (near, far):
            for number in range(200):
                await near.send(str(number).encode())
                message = await far.receive()
                assert message is not None
                assert int(message.payload) == number

    def loop() -> None:
        try:
            run(echo())
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=loop) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_many_associations_at_once() -> None:
    async def main() -> None:
        async with aio.Endpoint(FIRST, listen=True) as server:

            async def serve() -> None:
                async with asyncio.TaskGroup() as group:
                    for _ in range(60):
                        far = await server.accept()
                        assert far is not None
                        group.create_task(answer(far))

            async def answer(far: aio.Association) -> None:
                async for message in far:
                    await far.send(message.payload[::-1])

            async def client(number: int) -> None:
                text = f"client {number}".encode()
                async with await aio.connect(*of(server), port=server.port, bind=[FIRST]) as near:
                    await near.send(text)
                    message = await near.receive()
                    assert message is not None
                    assert message.payload == text[::-1]

            async with asyncio.TaskGroup() as group:
                group.create_task(serve())
                for number in range(60):
                    group.create_task(client(number))

    run(main())
