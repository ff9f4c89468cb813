import CRUDClient
import Glibc

/// A file that only its user may read, in which a text is edited.
struct EditedFile {
    let path: String
    private let original: [UInt8]
    /// A second file, with what is to be compared.
    private var other: String?

    /// - Throws: `internal_error` where there is no room for it.
    init(_ text: [UInt8]) throws {
        original = text
        path = try Self.make(text)
    }

    private static func make(_ text: [UInt8]) throws -> String {
        let suffix = ".json"
        var name = Array("\(environment("TMPDIR") ?? "/tmp")/crudctl-XXXXXX\(suffix)".utf8CString)
        // The name is terminated, and has the six characters that are replaced.
        let file = name.withUnsafeMutableBufferPointer { bytes in
            unsafe bytes.baseAddress.map { unsafe mkstemps($0, CInt(suffix.utf8.count)) } ?? -1
        }
        let path = String(decoding: name.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
        guard file >= 0, FileOutput.write(text, to: file), close(file) == 0 else {
            throw CRUDError(.internalError, "cannot write \(path): \(ErrorNumber.message)")
        }
        return path
    }

    /// Keeps a text beside it, which the editor opens too.
    mutating func keepBeside(_ text: [UInt8]) throws {
        if let other { unlink(other) }
        let other = try Self.make(text)
        self.other = other
        StandardError.write("crudctl: the record as it is now is in \(other); your text would replace it\n")
    }

    /// Runs the editor until it exits.
    ///
    /// - Throws: `unavailable` if that fails; the file stays if something has been typed.
    func edit() throws {
        let editor = Self.environment("VISUAL") ?? Self.environment("EDITOR") ?? "vi"
        // The shell gets the paths as variables, so that nothing in them is a word of its own.
        setenv("CRUDCTL_EDITED", path, 1)
        setenv("CRUDCTL_OTHER", other ?? "", 1)
        let status = system(editor + " \"$CRUDCTL_EDITED\"" + (other == nil ? "" : " \"$CRUDCTL_OTHER\""))
        guard status != 0 else { return }
        var message = "the editor has failed: \(editor)"
        if isChanged { message += "; what you have typed is in \(path)" } else { remove() }
        throw CRUDError(.unavailable, message)
    }

    /// Whether the text is another than the first one; also where it cannot be read.
    var isChanged: Bool { (try? TextSource.file(path).text("the item")) != original }

    func remove() {
        unlink(path)
        if let other { unlink(other) }
    }

    /// A variable that is not empty.
    private static func environment(_ name: String) -> String? {
        // The variable is terminated, and copied at once.
        guard let value = unsafe getenv(name).map({ unsafe String(cString: $0) }), !value.isEmpty else { return nil }
        return value
    }
}
