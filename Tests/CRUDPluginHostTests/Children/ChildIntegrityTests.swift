import CRUDModel
import CRUDTestSupport
import Glibc
import Logging
import Testing

@testable import CRUDPluginHost

/// The file that has been checked is the one that a child loads or executes. Each test has it replaced while the child
/// is starting, by the program that starts it.
@Suite struct ChildIntegrityTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
        try Files.copy(BuildProducts.path(of: "libmemory.so"), to: "\(directory.path)/memory.so", mode: 0o755)
        let store = "\(BuildProducts.packageDirectory)/Plugins/Examples/store.py"
        try Files.copy(store, to: "\(directory.path)/store.py", mode: 0o755)
        for name in ["memory.so", "store.py"] {
            try Files.copy("\(directory.path)/\(name)", to: "\(directory.path)/\(name).new", mode: 0o755)
        }
        try Files.write(
            """
            #!/bin/sh
            cd '\(directory.path)'
            for name in memory.so store.py; do test -e $name.new && echo >>$name.new && mv $name.new $name; done
            exec '\(BuildProducts.path(of: "crudd-plugin-host"))' "$@"

            """, to: "\(directory.path)/launcher", mode: 0o755)
    }

    static let programs = ["memory.so", "store.py"]

    /// Starts a child whose file is replaced meanwhile.
    private func start(_ file: String, sha256: String?) throws -> Child {
        let path = "\(directory.path)/\(file)"
        let program: ChildCommand.Program =
            file == "memory.so" ? .plugin("memory", directories: [directory.path]) : .executable([path])
        let command = ChildCommand(
            backend: "kid", program: program, sha256: sha256, limits: ChildCommand.Limits(callTimeout: .seconds(30)),
            loopCount: 1, launcher: "\(directory.path)/launcher")
        let host = PluginHostCallbacks(backend: "kid", logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        defer { withExtendedLifetime(host) {} }
        return try Child(command, host: HostReference(host.pointer)) {}
    }

    @Test(arguments: programs)
    func childComparesTheDigest(file: String) throws {
        let digest = SHA256.digest(try Files.read("\(directory.path)/\(file)"))
        let failure = try #require(throws: PluginFailure.self) { try start(file, sha256: digest).close() }
        #expect(failure.isFinal)
        #expect(failure.message.contains("the configuration wants \(digest)"), "\(failure.message)")
    }

    /// The next child runs the new one.
    @Test(arguments: programs)
    func childOfAReplacedFileIsNotUsed(file: String) throws {
        let failure = try #require(throws: PluginFailure.self) { try start(file, sha256: nil).close() }
        #expect(!failure.isFinal)
        #expect(failure.message == "\(directory.path)/\(file) has been replaced while it was being loaded")
        try start(file, sha256: SHA256.digest(try Files.read("\(directory.path)/\(file)"))).close()
    }
}
