import CRUDModel
import Glibc

extension Configuration {
    /// The longest file that is read: enough for tens of thousands of collections.
    package static let maximumFileBytes = 4 << 20

    /// Reads a configuration from a file.
    ///
    /// - Parameters:
    ///   - path: also the file's name in diagnostics.
    ///   - environment: `$STATE_DIRECTORY` replaces a missing `state_directory`.
    ///   - mustBeTrusted: whether a file that others may write to is refused: what it says is executed.
    /// - Throws: ``InvalidConfiguration`` with every error; a file that cannot be read or trusted is one, at its
    ///   beginning.
    package static func load(
        path: String, environment: [String: String], mustBeTrusted: Bool = true
    ) throws(InvalidConfiguration) -> Configuration {
        let contents: [UInt8]
        do {
            contents = try read(path, mustBeTrusted: mustBeTrusted)
        } catch {
            throw InvalidConfiguration([
                ConfigurationDiagnostic(
                    file: path, position: .start, message: error.message, kind: error.kind)
            ])
        }
        return try Configuration(yaml: contents, file: path, environment: environment)
    }

    /// Reads a configuration from the contents of a file.
    ///
    /// - Parameter file: the file's name in diagnostics.
    /// - Throws: ``InvalidConfiguration`` with every error.
    package init(yaml: [UInt8], file: String, environment: [String: String]) throws(InvalidConfiguration) {
        let composer = YAMLComposer(yaml, file: file)
        // Nothing can be said about what a document lacks that could not be read to its end.
        guard composer.isComplete else { throw InvalidConfiguration(composer.diagnostics) }
        var decoder = ConfigurationDecoder(
            file: file, environment: environment, diagnostics: composer.diagnostics)
        let configuration = decoder.configuration(composer.root)
        guard decoder.diagnostics.isEmpty, let configuration else {
            throw InvalidConfiguration(decoder.diagnostics, remainder: configuration)
        }
        self = configuration
    }

    private struct ReadError: Error {
        let message: String
        var kind = SystemErrorKind.configuration

        init(_ message: String) {
            self.message = message
        }

        init(_ what: String, _ code: Int32) {
            message = "\(what): \(systemMessage(code))"
            kind = SystemErrorKind(code)
        }
    }

    private static func read(_ path: String, mustBeTrusted: Bool) throws(ReadError) -> [UInt8] {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw ReadError("cannot be opened", errno) }
        defer { close(descriptor) }
        if mustBeTrusted { try checkTrust(descriptor) }
        var contents: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = Glibc.read(descriptor, &chunk, chunk.count)
            if count == 0 { return contents }
            if count > 0 {
                contents += chunk.prefix(count)
            } else if errno != EINTR {
                throw ReadError("cannot be read", errno)
            }
            if contents.count > maximumFileBytes {
                throw ReadError("the file is longer than \(Quantity.size.text(maximumFileBytes))")
            }
        }
    }

    /// The rule of sudo(8) for its file, and of ssh(1): what is open is what is checked. Another user who may write to
    /// the directory can put another file there, but none with such an owner.
    private static func checkTrust(_ descriptor: CInt) throws(ReadError) {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw ReadError("cannot be examined", errno) }
        guard status.st_uid == 0 || status.st_uid == geteuid() else {
            throw ReadError("belongs to user \(status.st_uid), neither to root nor to the daemon's own user")
        }
        if status.st_mode & (S_IWGRP | S_IWOTH) != 0 { throw ReadError("can be written by others: chmod go-w") }
    }
}

/// The system's message for an `errno`.
func systemMessage(_ code: Int32) -> String {
    // Thread-safe since glibc 2.32, and never null.
    String(cString: strerror(code))
}
