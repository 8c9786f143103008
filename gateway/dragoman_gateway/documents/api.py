"""Documents in DeepL's API and LibreTranslate's: upload, status, download."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import mimetypes
import os
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from aiohttp import web

from dragoman_gateway.calls import ApiCall, Endpoint
from dragoman_gateway.deepl import formality_of, glossary_of, languages_of
from dragoman_gateway.documents.folder import ID, DocumentFolder, is_known, safe_name, suffix_of
from dragoman_gateway.documents.multipart import BodyPart, MultipartBody
from dragoman_gateway.documents.records import DocumentRecord, DocumentRecords
from dragoman_gateway.documents.running import handle, read_handle
from dragoman_gateway.errors import ApiError
from dragoman_gateway.glossaries.usable import FindUsable
from dragoman_gateway.languages import OfferedLanguages
from dragoman_gateway.metrics import GatewayMetrics
from dragoman_gateway.parameters import Parameters, ask_for_body, query_values
from dragoman_gateway.settings import ServeSettings
from dragoman_gateway.usage import KeyUsage

_POST: Final = frozenset({"POST"})
_GET: Final = frozenset({"GET"})
_FIELDS_BYTES: Final = 64 * 1024
_WRITE_BYTES: Final = 256 * 1024
_POLL_S: Final = 0.5
_MISSING: Final = ApiError(404, "Document not found.")
_NO_ROOM: Final = "There is no room for another document now. Ask again later."


class _Upload(NamedTuple):
    parameters: Parameters
    filename: str
    size: int
    sha256: str


class DocumentApi:
    """The endpoints of documents."""

    def __init__(
        self,
        folder: DocumentFolder,
        records: DocumentRecords,
        settings: ServeSettings,
        *,
        topics: tuple[str, ...],
        languages: Callable[[], OfferedLanguages],
        glossary: FindUsable,
        usage: KeyUsage,
        metrics: GatewayMetrics,
        uploaded: Callable[[], None],
    ) -> None:
        self._folder = folder
        self._records = records
        self._settings = settings
        self._topics = topics
        self._languages = languages
        self._glossary = glossary
        self._usage = usage
        self._metrics = metrics
        self._uploaded = uploaded

    def endpoints(self) -> dict[str, Endpoint]:
        """Return the endpoints by path."""
        found: dict[str, Endpoint] = {}
        if "deepl" in self._settings.apis:
            found["/v2/document"] = Endpoint("deepl", self.upload, _POST, reads_body=True)
            found["/v2/document/{id}"] = Endpoint("deepl", self.status)
            found["/v2/document/{id}/result"] = Endpoint("deepl", self.result)
        if "libretranslate" in self._settings.apis:
            found["/translate_file"] = Endpoint(
                "libretranslate", self.translate_file, _POST, reads_body=True
            )
            found["/download_file/{id}/{name}"] = Endpoint(
                "libretranslate", self.download_file, _GET, needs_key=False
            )
        return found

    # --- DeepL ----------------------------------------------------------------------------------

    async def upload(self, call: ApiCall) -> object:
        """Store a document, and answer with its id and key."""
        document_id = await self._stored(call)
        key = self._folder.document_key(document_id)
        return {"document_id": document_id, "document_key": key}

    async def status(self, call: ApiCall) -> object:
        """Tell how far a document is."""
        record = await self._own(call)
        answer: dict[str, Any] = {"document_id": record.id, "status": record.status}
        if record.status == "translating":
            answer["seconds_remaining"] = max(1, record.number("seconds"))
        if record.status == "done":
            answer["billed_characters"] = record.number("characters")
        if record.status == "error":
            answer["error_message"] = answer["message"] = record.fields.get("message", "internal")
        return answer

    async def result(self, call: ApiCall) -> web.StreamResponse:
        """Answer with the translated document."""
        return await self._download(await self._own(call))

    # --- LibreTranslate -------------------------------------------------------------------------

    async def translate_file(self, call: ApiCall) -> object:
        """Store a document, wait for its translation, and answer with its URL."""
        document_id = await self._stored(call)
        until = time.monotonic() + self._settings.hold_s
        while (record := await self._records.read(document_id)) is not None:
            if record.status == "error":
                raise ApiError(400, record.fields.get("message", "internal"))
            if record.status == "done":
                scheme = call.request.headers.get("X-Forwarded-Proto", call.request.scheme)
                scheme = "https" if scheme == "https" else "http"
                place = handle(record.id, self._folder.document_key(record.id))
                path = f"/download_file/{place}/{quote(record.asked['name'], safe='')}"
                return {"translatedFileUrl": f"{scheme}://{call.request.host}{path}"}
            if time.monotonic() >= until:
                raise ApiError(503, "The document is being translated. Send it again.", 5)
            await asyncio.sleep(_POLL_S)
        raise _MISSING

    async def download_file(self, call: ApiCall) -> web.StreamResponse:
        """Answer with the document of a URL of `translate_file`."""
        found = read_handle(call.place["id"])
        record = await self._record(*found) if found is not None else None
        if record is None:
            raise _MISSING
        return await self._download(record)

    # --- reading --------------------------------------------------------------------------------

    async def _own(self, call: ApiCall) -> DocumentRecord:
        """Return the caller's document. Raises ApiError: one of another key is not there."""
        document_id = call.place["id"].upper()
        record = await self._record(document_id, call.parameters.one("document_key") or "")
        if record is None or record.key != call.key.id:
            raise _MISSING
        return record

    async def _record(self, document_id: str, key: str) -> DocumentRecord | None:
        if not ID.fullmatch(document_id):
            return None
        right = self._folder.document_key(document_id)
        if not hmac.compare_digest(right.encode(), key.upper().encode("utf-8", "replace")):
            return None
        return await self._records.read(document_id)

    async def _download(self, record: DocumentRecord) -> web.StreamResponse:
        if record.status == "error":
            raise ApiError(400, record.fields.get("message", "internal"))
        if record.status != "done":
            raise ApiError(503, "The document is not translated yet. Ask again.", 1)
        path = self._folder.of(record.id) / record.fields["output"]
        try:
            file = await asyncio.to_thread(path.open, "rb")
        except OSError:
            raise _MISSING from None
        await self._records.downloaded(record)
        name = record.asked["name"]
        plain = name.encode("ascii", "replace").decode().replace('"', "_").replace("\\", "_")
        kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
        headers = {
            "Content-Disposition": f"attachment; filename=\"{plain}\"; filename*=UTF-8''"
            + quote(name, safe=""),
            "Content-Security-Policy": "sandbox",
            "Content-Type": kind,
            "X-Dragoman-Report": record.fields.get("report", ""),
        }
        return web.Response(body=file, headers=headers)

    # --- storing --------------------------------------------------------------------------------

    async def _stored(self, call: ApiCall) -> str:
        """Store the document of a request; return its id, or that of an equal one of late."""
        document_id = secrets.token_hex(16).upper()
        folder = self._folder.of(document_id)
        kept = False
        try:
            received = await self._received(call, folder)
            asked = await self._asked(call, received)
            await asyncio.to_thread(_finish, folder, asked["suffix"])
            digest = _digest(call.key.id, received.sha256, asked)
            same = await self._records.same(digest, document_id)
            if same is None:
                await self._records.create(document_id, call.key.id, asked, digest=digest)
                kept = True
                self._uploaded()
            return same or document_id  # noqa: TRY300  `finally` needs `kept` first
        except OSError as error:
            self._metrics.no_space.inc()
            raise ApiError(503, _NO_ROOM, 60) from error
        finally:
            if not kept:
                await asyncio.to_thread(self._folder.remove, document_id)

    async def _received(self, call: ApiCall, folder: Path) -> _Upload:
        """Write the document to its folder. Raises ApiError and OSError."""
        limit = self._settings.documents.max_bytes + _FIELDS_BYTES
        await ask_for_body(call.request, limit)
        values = query_values(call.request)
        body = MultipartBody(
            call.request.headers.get("Content-Type", ""), call.request.content, limit
        )
        size, sha256, filename, known = -1, "", "", False
        if call.request.headers.get("Authorization"):
            known = self._identify(call, values)
        async for part in body.parts():
            if part.filename is None and part.name != "file":
                values.setdefault(part.name, []).append(await _field(part))
            elif size < 0:
                known = known or self._identify(call, values)
                most = min(call.key.document_max_bytes or limit, self._settings.documents.max_bytes)
                if not await asyncio.to_thread(
                    self._folder.has_room, min(most, call.request.content_length or most)
                ):
                    raise OSError
                size, sha256 = await _write(part, folder, most)
                filename = part.filename or ""
        known = known or self._identify(call, values)
        if size < 0:
            raise ApiError(400, "Parameter 'file' not specified.")
        return _Upload(Parameters(values), filename, size, sha256)

    def _identify(self, call: ApiCall, values: dict[str, list[str]]) -> bool:
        """Find the key before the document is read. Raises ApiError (403)."""
        if call.key_of is not None:
            call.key = call.key_of(Parameters(values))
        return True

    async def _asked(self, call: ApiCall, received: _Upload) -> dict[str, Any]:
        """Return what the caller asks for. Raises ApiError."""
        parameters, key, languages = received.parameters, call.key, self._languages()
        if call.api == "libretranslate":
            parameters = _as_deepl(parameters)
        name = safe_name(parameters.one("filename") or received.filename)
        suffix = suffix_of(name)
        if not received.size:
            raise ApiError(400, "Invalid file data: the file is empty.")
        target, source = languages_of(parameters, languages)
        formality = formality_of(parameters, languages, target)
        glossary = await glossary_of(
            self._glossary, key, parameters.one("glossary_id"), source, target
        )
        if glossary is not None:
            await asyncio.sleep(glossary.wait_s)  # the run may begin at once
        wanted = (parameters.one("output_format") or suffix[1:]).lower().removeprefix(".")
        if wanted != suffix[1:]:
            raise ApiError(400, f"A document keeps its format; output_format can only be {suffix}.")
        await self._usage.check(key, 1)
        return {
            "name": name, "suffix": suffix, "target": target, "source": source,
            "formality": formality, "glossary": None if glossary is None else glossary.name,
            "glossary_digest": None if glossary is None else glossary.digest,
            "topic": key.topic or self._topics[-1], "profile": key.profile, "memory": key.memory,
            "quality": key.quality.level if key.quality else None,
            "on_fail": key.quality.on_fail if key.quality else None,
        }  # fmt: skip


def _as_deepl(parameters: Parameters) -> Parameters:
    """Return LibreTranslate's parameters by DeepL's names."""
    source = parameters.one("source") or "auto"
    values = {"target_lang": [parameters.one("target") or ""]}
    if source.lower() != "auto":
        values["source_lang"] = [source]
    return Parameters(values)


async def _field(part: BodyPart) -> str:
    value = b""
    async for chunk in part.chunks:
        value += chunk
        if len(value) > _FIELDS_BYTES:
            raise ApiError(400, "A field of the form is too long.")
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise ApiError(400, "The request is not valid UTF-8.") from None


async def _write(part: BodyPart, folder: Path, limit: int) -> tuple[int, str]:
    """Write a part to the disk; return its size and SHA-256. Raises ApiError, OSError."""
    await asyncio.to_thread((folder / "in").mkdir, parents=True, mode=0o700)
    digest, size, waiting = hashlib.sha256(), 0, bytearray()
    file = await asyncio.to_thread((folder / "in" / ".part").open, "xb")
    try:
        async for chunk in part.chunks:
            size += len(chunk)
            if size > limit:
                raise ApiError(413, f"The document is too large; the limit is {limit} bytes.")
            digest.update(chunk)
            waiting += chunk
            if len(waiting) >= _WRITE_BYTES:
                await asyncio.to_thread(file.write, bytes(waiting))
                waiting.clear()
        await asyncio.to_thread(file.write, bytes(waiting))
        await asyncio.to_thread(file.flush)
        await asyncio.to_thread(os.fsync, file.fileno())
    finally:
        await asyncio.to_thread(file.close)
    return size, digest.hexdigest()


def _finish(folder: Path, suffix: str) -> None:
    """Give the document its name, if it is of a format that is translated. Raises ApiError."""
    document = folder / "in" / f"document{suffix}"
    (folder / "in" / ".part").replace(document)
    if not is_known(document):
        raise ApiError(400, "Invalid file data: no document of this file extension is translated.")


def _digest(key: str, sha256: str, asked: dict[str, Any]) -> str:
    spelled = json.dumps([key, sha256, asked], sort_keys=True).encode()
    return hashlib.sha256(spelled).hexdigest()[:40]
