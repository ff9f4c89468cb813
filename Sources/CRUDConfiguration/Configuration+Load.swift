import Glibc

extension Configuration {
    /// The longest file that is read: room for tens of thousands of collections, and for no accident.
    package static let maximumFileBytes = 4 << 20

    /// Reads a configuration from a file.
    ///
    /// - Parameters:
    ///   - path: also what the faults call the file.
    ///   - environment: what stands in for a missing `state_directory` is taken from it.
    /// - Throws: ``InvalidConfiguration`` with every fault; that the file cannot be read is one, at its beginning.
    package static func load(
        path: String, environment: [String: String]
    ) throws(InvalidConfiguration) -> Configuration {
        let contents: [UInt8]
        do {
            contents = try read(path)
        } catch {
            throw InvalidConfiguration([ConfigurationFault(file: path, position: .start, message: error.message)])
        }
        return try Configuration(yaml: contents, file: path, environment: environment)
    }

    /// Reads a configuration from the contents of a file.
    ///
    /// - Parameter file: what the faults call it.
    /// - Throws: ``InvalidConfiguration`` with every fault.
    package init(yaml: [UInt8], file: String, environment: [String: String]) throws(InvalidConfiguration) {
        let composer = YAMLComposer(yaml, file: file)
        // What a document that breaks off would have lacked cannot be told.
        guard composer.isComplete else { throw InvalidConfiguration(composer.faults) }
        var decoder = ConfigurationDecoder(file: file, environment: environment)
        let configuration = decoder.configuration(composer.root)
        let faults = composer.faults + decoder.faults
        guard faults.isEmpty, let configuration else { throw InvalidConfiguration(faults) }
        self = configuration
    }

    private struct ReadFault: Error {
        let message: String
    }

    private static func read(_ path: String) throws(ReadFault) -> [UInt8] {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw ReadFault(message: "cannot be opened: \(systemMessage(errno))") }
        defer { close(descriptor) }
        var contents: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = Glibc.read(descriptor, &chunk, chunk.count)
            if count == 0 { return contents }
            if count > 0 {
                contents += chunk.prefix(count)
            } else if errno != EINTR {
                throw ReadFault(message: "cannot be read: \(systemMessage(errno))")
            }
            if contents.count > maximumFileBytes {
                throw ReadFault(message: "the file is longer than \(Quantity.size.text(maximumFileBytes))")
            }
        }
    }
}

/// What the system says of an `errno`.
func systemMessage(_ code: Int32) -> String {
    // Safe in threads since glibc 2.32, and never null.
    String(cString: strerror(code))
}
