import CLinux
package import CRUDJSON
package import CRUDModel
import Glibc

/// The lines of a catalog: `{"name":…,"backend":…,"format":…}`, or `{"name":…}` for a collection to be forgotten.
///
/// A collection that is being moved has `"move":{"state":…,"backend":…,"format":…}` too, one that has been moved
/// `"originals":[{"backend":…,"format":…},…]`.
enum CatalogFile {
    /// A collection's name, and where it lives; nil: nowhere any more.
    typealias Line = (name: [UInt8], entry: CollectionCatalog.Entry?)

    /// Reads every line; one without an end, which a crash has left, is cut off.
    static func load(_ descriptor: CInt, _ path: String) throws(SystemError) -> [Line] {
        guard let text = contents(descriptor) else { throw SystemError("cannot read \(path)") }
        var lines: [Line] = []
        var start = 0
        while let end = text[start...].firstIndex(of: UInt8(ascii: "\n")) {
            guard let line = line(Array(text[start..<end])) else {
                throw SystemError(message: "\(path) is damaged at byte \(start)", code: EINVAL)
            }
            lines.append(line)
            start = end + 1
        }
        if start < text.count, ftruncate(descriptor, off_t(start)) != 0 { throw SystemError("cannot mend \(path)") }
        return lines
    }

    /// Appends a line and syncs it; false with errno, and nothing appended, if that fails.
    static func append(_ line: Line, to descriptor: CInt) -> Bool {
        var writer = JSONWriter()
        writer.object { object in
            object.key("name")
            object.string(utf8: line.name)
            guard let entry = line.entry else { return }
            object.members(of: entry.place)
            if let move = entry.move {
                object.key("move")
                object.object { members in
                    members.member("state", move.state.rawValue)
                    members.members(of: move.destination)
                }
            }
            if !entry.originals.isEmpty {
                object.key("originals")
                object.array { places in
                    for place in entry.originals { places.object { $0.members(of: place) } }
                }
            }
        }
        let text = writer.bytes + [UInt8(ascii: "\n")]
        let end = lseek(descriptor, 0, SEEK_END)
        let written = text.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
        if written == text.count, fdatasync(descriptor) == 0 { return true }
        let code = written >= 0 && written < text.count ? ENOSPC : errno
        // A line that is not wholly there must not stay before the next one.
        _ = ftruncate(descriptor, end)
        errno = code
        return false
    }

    private static func contents(_ descriptor: CInt) -> [UInt8]? {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return nil }
        var text = [UInt8](repeating: 0, count: Int(status.st_size))
        var filled = 0
        while filled < text.count {
            let size = text.withUnsafeMutableBytes {
                pread(descriptor, $0.baseAddress.map { $0 + filled }, $0.count - filled, off_t(filled))
            }
            if size < 0, errno == EINTR { continue }
            guard size > 0 else { return nil }
            filled += size
        }
        return text
    }

    private static func line(_ bytes: [UInt8]) -> Line? {
        let text = bytes.span
        var scanner = JSONScanner()
        do throws(JSONSyntaxError) {
            guard let members = try Members(text, &scanner), scanner.isAtEnd(text), let name = members.name else {
                return nil
            }
            guard let place = members.place else {
                return members.strings["backend"] == nil && members.strings["format"] == nil ? (name, nil) : nil
            }
            var entry = CollectionCatalog.Entry(name: name, place: place)
            entry.move = members.move
            entry.originals = members.originals
            return (name, entry)
        } catch {
            return nil
        }
    }

    /// The members of a line, or of an object in it.
    private struct Members {
        var name: [UInt8]?
        var strings: [String: String] = [:]
        var move: CollectionCatalog.PlannedMove?
        var originals: [CollectionPlace] = []

        var place: CollectionPlace? {
            guard let backend = strings["backend"], let format = strings["format"].flatMap(CollectionRule.Format.init)
            else { return nil }
            return CollectionPlace(backend: backend, format: format)
        }

        /// - Returns: nil for anything but an object.
        init?(_ text: Span<UInt8>, _ scanner: inout JSONScanner) throws(JSONSyntaxError) {
            guard try scanner.peekKind(text) == .object else { return nil }
            scanner.enter()
            var isFirst = true
            while let key = try scanner.nextKey(text, isFirst: &isFirst) {
                if key.equals("move", text) {
                    guard let members = try Members(text, &scanner), let place = members.place,
                        let state = members.strings["state"].flatMap(Move.State.init)
                    else { return nil }
                    move = .init(destination: place, state: state)
                } else if key.equals("originals", text), try scanner.peekKind(text) == .array {
                    scanner.enter()
                    var isFirstElement = true
                    while try scanner.nextElement(text, isFirst: &isFirstElement) {
                        guard let place = try Members(text, &scanner)?.place else { return nil }
                        originals.append(place)
                    }
                } else {
                    let value = try scanner.value(text)
                    guard value.kind == .string else { continue }
                    let string = value.decodedString(text)
                    if key.equals("name", text) { name = string }
                    for known: StaticString in ["backend", "format", "state"] where key.equals(known, text) {
                        strings[known.description] = String(decoding: string, as: UTF8.self)
                    }
                }
            }
        }
    }
}

extension JSONWriter {
    /// `backend` and `format`.
    package mutating func members(of place: CollectionPlace) {
        member("backend", place.backend)
        member("format", place.format.rawValue)
    }
}
