import CRUDTestSupport
import Foundation

/// A daemon with a suite in a home directory of its own, and what can be seen there from outside.
///
/// The suite's place depends on the environment, which a process of many tests cannot change.
final class SuiteDaemon {
    let home: String
    private let directory: TemporaryDirectory
    private let installation: Installation
    private(set) var daemon: Daemon?

    /// - Parameter home: by default a directory of its own.
    init(home: String? = nil, isolation: String = "inline") throws {
        directory = try TemporaryDirectory()
        self.home = home ?? directory.path
        installation = try Installation(
            text: """
                state_directory: $DIRECTORY/state
                socket: {path: $DIRECTORY/crudd.sock}
                plugins: {directories: [$DIRECTORY/plugins]}
                backends: {main: {plugin: userdefaults, isolation: \(isolation), options: {suite: com.example.test}}}
                collections: {"*": {backend: main}}
                """)
        try Files.copy(
            BuildProducts.path(of: "libuserdefaults.so"), to: "\(installation.pluginDirectory)/userdefaults.so",
            mode: 0o755)
    }

    /// Starts the daemon, or another one after the last has ended.
    @discardableResult
    func start(home: String? = nil) throws -> Connection {
        let started = try Daemon(on: installation, environment: ["HOME": home ?? self.home, "XDG_CONFIG_HOME": ""])
        daemon = started
        return try started.connect()
    }

    func stop() throws {
        try daemon?.stop()
    }

    func kill() throws {
        try daemon?.kill()
    }

    var log: String { daemon?.log ?? "" }

    // MARK: The file

    var configuration: String { "\(home)/.config" }
    var path: String { "\(configuration)/com.example.test.plist" }

    /// The suite as another program reads it.
    func list() throws -> [String: Any] {
        let list = try PropertyListSerialization.propertyList(from: Data(Files.read(path)), format: nil)
        guard let list = list as? [String: Any] else { throw Failure("\(path) is no list") }
        return list
    }

    /// Changes the suite as another program does.
    func edit(_ body: (inout [String: Any]) -> Void) throws {
        var list = Files.exists(path) ? try self.list() : [:]
        body(&list)
        if !Files.exists(configuration) { try Files.makeDirectory(configuration, mode: 0o700) }
        let bytes = try PropertyListSerialization.data(fromPropertyList: list, format: .xml, options: 0)
        try Files.write(Array(bytes), to: path, mode: 0o600)
    }
}
