import ArgumentParser
import Glibc

/// The file in which `watch` remembers how far it has come.
struct CursorFile {
    let path: String

    /// The cursor; nil if there is no such file.
    func read() throws -> String? {
        guard access(path, F_OK) == 0 || errno != ENOENT else { return nil }
        let text = String(decoding: try TextSource.file(path).text("a cursor"), as: UTF8.self)
        let words = text.split(whereSeparator: \.isWhitespace)
        guard words.count == 1, let cursor = words.first else {
            throw ValidationError("\(path) has no cursor: delete it to begin again")
        }
        return String(cursor)
    }

    /// Replaces the file atomically: it has the old cursor or the new one, whatever happens.
    func replace(with cursor: String) throws {
        let text = Array("\(cursor)\n".utf8)
        let new = "\(path).new"
        let file = open(new, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o666)
        guard file >= 0 else { throw ErrorNumber.cannotWrite(path) }
        let isWritten = FileOutput.write(text, to: file) && fdatasync(file) == 0
        let error = errno
        close(file)
        errno = error
        guard isWritten, rename(new, path) == 0 else { throw ErrorNumber.cannotWrite(path) }
    }
}
