"""Implements the part of the X11 protocol that shows from outside which windows a desktop has. The
container needs no program for that, so nothing is read from its disk. The server reports changes,
so the windows are searched again only after a report or after half a second."""

import select
import socket
import struct
import time

WM_CLASS, STRING = 67, 31
SUBSTRUCTURE_NOTIFY = 1 << 19
MAP_NOTIFY, REPARENT_NOTIFY, CONFIGURE_NOTIFY = 19, 21, 22
VIEWABLE = 2


class XClient:
    def __init__(self, path, timeout=60.0):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(timeout)
        self.sequence = 0
        self.events = []
        try:
            self.socket.connect(path)
            self._set_up()
        except BaseException:
            self.socket.close()
            raise

    def close(self):
        self.socket.close()

    def _receive(self, n):
        parts = []
        while n > 0:
            part = self.socket.recv(n)
            if not part:
                raise ConnectionError("the X server closed the connection")
            parts.append(part)
            n -= len(part)
        return b"".join(parts)

    def _set_up(self):
        self.socket.sendall(struct.pack("<BxHHHHxx", ord("l"), 11, 0, 0, 0))
        status, _, _, length = struct.unpack("<BxHHH", self._receive(8))
        body = self._receive(length * 4)
        if status != 1:
            raise ConnectionError("the X server refused the connection")
        vendor, formats = struct.unpack_from("<H", body, 16)[0], body[21]
        screen = 32 + (vendor + 3) // 4 * 4 + formats * 8
        self.root, = struct.unpack_from("<I", body, screen)

    def _message(self):
        """Reads one reply, error or event: 32 bytes, and the rest of a reply."""
        head = self._receive(32)
        if head[0] == 1:
            head += self._receive(struct.unpack_from("<I", head, 4)[0] * 4)
        return head

    def _send(self, opcode, detail, *words):
        self.socket.sendall(struct.pack(f"<BBH{len(words)}I", opcode, detail, 1 + len(words),
                                        *words))
        self.sequence = (self.sequence + 1) & 0xffff

    def _ask(self, opcode, detail, *words):
        """Returns the reply, or None if the server answers with an error because the window has
        gone."""
        self._send(opcode, detail, *words)
        while True:
            message = self._message()
            if message[0] in (0, 1):
                if struct.unpack_from("<H", message, 2)[0] == self.sequence:
                    return message if message[0] == 1 else None
            else:
                self.events.append(message[0] & 0x7f)

    def watch(self, window):
        self._send(2, 0, window, 1 << 11, SUBSTRUCTURE_NOTIFY)

    def viewable(self, window):
        reply = self._ask(3, 0, window)
        return reply is not None and reply[26] == VIEWABLE

    def children(self, window):
        reply = self._ask(15, 0, window)
        if reply is None:
            return ()
        return struct.unpack_from(f"<{struct.unpack_from('<H', reply, 16)[0]}I", reply, 32)

    def wm_class(self, window):
        reply = self._ask(20, 0, window, WM_CLASS, STRING, 0, 64)
        if reply is None:
            return ""
        length, = struct.unpack_from("<I", reply, 16)
        return reply[32:32 + length].decode("latin-1").split("\0")[-2:][0].lower()

    def shown(self, window=None, depth=3):
        """Returns the classes (lower case) of all viewable windows below `window`. It searches a
        few levels, because a window manager puts frames around windows."""
        found = set()
        for child in self.children(window or self.root):
            if not self.viewable(child):
                continue
            name = self.wm_class(child)
            if name:
                found.add(name)
            elif depth > 1:
                found |= self.shown(child, depth - 1)
        return found

    def wait_shown(self, wanted, deadline):
        """Waits until windows of all classes in `wanted` are viewable. Returns the classes that are
        still missing when time.monotonic() passes `deadline`."""
        self.watch(self.root)
        while True:
            missing = set(wanted) - self.shown()
            if not missing:
                return missing
            # If a window was mapped or reparented during the search, the search starts again at once.
            while not set(self.events) & {MAP_NOTIFY, REPARENT_NOTIFY}:
                left = deadline - time.monotonic()
                if left <= 0:
                    return missing
                if select.select([self.socket], [], [], min(left, 0.5))[0]:
                    message = self._message()
                    if message[0] > 1:
                        self.events.append(message[0] & 0x7f)
                else:
                    break  # searches again: no event says that a window was mapped in its frame
            self.events.clear()

    def wait_quiet(self, seconds, deadline):
        """Waits until no window has come, gone or moved for some time, so that the desktop has
        settled."""
        while time.monotonic() < deadline:
            if not select.select([self.socket], [], [], seconds)[0]:
                return True
            self._message()
        return False
