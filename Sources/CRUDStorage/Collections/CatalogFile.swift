import CLinux
import CRUDJSON

#if canImport(Glibc)
import Glibc
#endif

/// The lines of a catalog: `{"name":…,"backend":…,"format":…}`, or `{"name":…}` for a collection to be forgotten.
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
                throw SystemError("\(path) is damaged at byte \(start)", code: EINVAL)
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
            object.member("backend", entry.backend)
            object.member("format", entry.format)
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
        var name: [UInt8]?
        var backend: [UInt8]?
        var format: [UInt8]?
        do throws(JSONSyntaxError) {
            guard try scanner.peekKind(text) == .object else { return nil }
            scanner.enter()
            var isFirst = true
            while let key = try scanner.nextKey(text, isFirst: &isFirst) {
                let value = try scanner.value(text)
                guard value.kind == .string else { continue }
                let string = value.decodedString(text)
                if key.equals("name", text) { name = string }
                if key.equals("backend", text) { backend = string }
                if key.equals("format", text) { format = string }
            }
            guard scanner.isAtEnd(text) else { return nil }
        } catch {
            return nil
        }
        guard let name, (backend == nil) == (format == nil) else { return nil }
        guard let backend, let format else { return (name, nil) }
        let entry = CollectionCatalog.Entry(
            name: name, backend: String(decoding: backend, as: UTF8.self),
            format: String(decoding: format, as: UTF8.self))
        return (name, entry)
    }
}
