import ArgumentParser
import Glibc

/// The file in which `watch` remembers how far it has come.
///
/// The directory may be one in which other users write too, such as `/tmp`: it is opened once, no link in it is
/// followed, and a new cursor is written to a new file, which then takes the name.
struct CursorFile {
    let path: String
    private let directory: Directory
    private let name: String
    /// The permissions of the file; nil where there was none.
    private let mode: mode_t?

    /// A descriptor that is closed with its last reference.
    private final class Directory {
        let number: Int32

        init(_ number: Int32) {
            self.number = number
        }

        deinit {
            if number >= 0 { close(number) }
        }
    }

    /// - Throws: a usage error if there is no such directory, or something that is not a regular file has the name.
    init(_ path: String) throws {
        self.path = path
        let slash = path.utf8.lastIndex(of: UInt8(ascii: "/"))
        let parent = slash.map { path[...$0] } ?? "./"
        name = slash.map { String(path[path.utf8.index(after: $0)...]) } ?? path
        directory = Directory(open(String(parent), O_RDONLY | O_DIRECTORY | O_CLOEXEC))
        guard directory.number >= 0 else { throw ErrorNumber.cannotWrite(path) }
        var status = stat()
        // The call writes one value of the type.
        if unsafe fstatat(directory.number, name.isEmpty ? "." : name, &status, AT_SYMLINK_NOFOLLOW) == 0 {
            try Self.check(status, path)
            mode = status.st_mode & 0o777
        } else {
            mode = nil
        }
    }

    private static func check(_ status: stat, _ path: String) throws {
        switch status.st_mode & S_IFMT {
        case S_IFREG: break
        case S_IFLNK: throw ValidationError("\(path) is a symbolic link; name the file itself")
        default: throw ValidationError("\(path) is not a regular file")
        }
    }

    /// The cursor; nil if there is no such file.
    ///
    /// - Throws: if the file could not be replaced either: what is printed first would be printed again.
    func read() throws -> String? {
        let file = openat(directory.number, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard file >= 0 else {
            guard errno == ENOENT else { throw ValidationError("cannot read \(path): \(ErrorNumber.message)") }
            try DeferredInterruption.during { _ = unlinkat(directory.number, try write(""), 0) }
            return nil
        }
        defer { close(file) }
        var status = stat()
        // The call writes one value of the type.
        if unsafe fstat(file, &status) == 0 { try Self.check(status, path) }
        let text = String(decoding: try TextSource.read(file, path), as: UTF8.self)
        let words = text.split(whereSeparator: \.isWhitespace)
        guard words.count == 1, let cursor = words.first else {
            throw ValidationError("\(path) has no cursor: delete it to begin again")
        }
        try replace(with: String(cursor))
        return String(cursor)
    }

    /// Replaces the file atomically: it has the old cursor or the new one, whatever happens.
    func replace(with cursor: String) throws {
        // Else the new file might be left behind.
        try DeferredInterruption.during {
            let new = try write(cursor)
            guard renameat(directory.number, new, directory.number, name) == 0 else {
                let error = errno
                unlinkat(directory.number, new, 0)
                errno = error
                throw ErrorNumber.cannotWrite(path)
            }
        }
    }

    /// Writes a cursor to a new file and returns its name, which no other process knows. It has the permissions of the
    /// file that it takes the place of.
    private func write(_ cursor: String) throws -> String {
        let new = "\(name).\(String(UInt64.random(in: .min ... .max), radix: 36))"
        let file = openat(directory.number, new, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode ?? 0o666)
        guard file >= 0 else { throw ErrorNumber.cannotWrite(path) }
        // The umask may have taken some away.
        if let mode { fchmod(file, mode) }
        let isWritten = FileOutput.write("\(cursor)\n".utf8, to: file) && fdatasync(file) == 0
        let error = errno
        close(file)
        guard isWritten else {
            unlinkat(directory.number, new, 0)
            errno = error
            throw ErrorNumber.cannotWrite(path)
        }
        return new
    }
}
