import Glibc

/// How a backend's child process is started: what runs, from where, and what it is held to.
package struct ChildCommand: Sendable {
    /// What runs in the child.
    package enum Program: Sendable {
        /// A plugin by its name in the configuration, which `crudd-plugin-host` loads.
        case plugin(String, directories: [String])
        /// An executable that speaks the child protocol itself, with its arguments.
        case executable([String])
    }

    /// What a child is held to.
    package struct Limits: Sendable {
        /// The most memory that it may make its own, in bytes.
        package var memoryBytes: Int
        /// The longest that one call may take.
        package var callTimeout: Duration
        /// The largest frame that it may send.
        package var frameBytes: Int

        package init(
            memoryBytes: Int? = nil, callTimeout: Duration? = nil, frameBytes: Int = 32 << 20
        ) {
            self.memoryBytes = memoryBytes ?? 256 << 20
            self.callTimeout = callTimeout ?? .seconds(10)
            self.frameBytes = frameBytes
        }
    }

    /// The name of the backend.
    let backend: String
    let program: Program
    /// The digest that the plugin's file must have.
    let sha256: String?
    let limits: Limits
    /// How many channels event loops read on, where the program is a plugin.
    let loopChannels: Int
    /// The program `crudd-plugin-host`.
    let launcher: String

    /// How many channels to a child one event loop has: while it reads a reply on one, the child executes the request
    /// on the other.
    package static let channelsPerLoop = 2

    /// - Parameter loopCount: how many event loops read by themselves.
    package init(
        backend: String, program: Program, sha256: String?, limits: Limits, loopCount: Int, launcher: String
    ) {
        self.backend = backend
        self.program = program
        self.sha256 = sha256
        self.limits = limits
        loopChannels = loopCount * Self.channelsPerLoop
        self.launcher = launcher
    }

    /// The name in the configuration: of a plugin, or the path of an executable.
    package var name: String {
        switch program {
        case .plugin(let name, _): name
        case .executable(let words): words.first ?? ""
        }
    }

    /// Finds and checks the file that the child is going to run, each time again: it may have been replaced since. The
    /// child itself compares its digest, of what it loads or executes.
    ///
    /// - Throws: ``PluginLoadingError``.
    package func file() throws(PluginLoadingError) -> PluginFile {
        switch program {
        case .plugin(let name, let directories): try PluginFile(named: name, in: directories, sha256: nil)
        case .executable: try PluginFile(executable: name, sha256: nil)
        }
    }

    /// What tells `crudd-plugin-host` that it is a child's first program.
    package static let option = "--child"
    /// Stands for any digest.
    package static let anyDigest = "any"

    /// The words that start the child with a file.
    func arguments(for file: PluginFile) -> [String] {
        let limits = [launcher, Self.option, "\(getpid())", "\(limits.memoryBytes)"]
        let pinned = [file.path, sha256 ?? Self.anyDigest]
        return switch program {
        case .plugin(_, let directories): limits + ["plugin"] + pinned + ["\(loopChannels)"] + directories
        case .executable(let words): limits + ["command"] + pinned + words
        }
    }

    /// What of the daemon's environment says where files and passwords are, so that a plugin finds them whatever the
    /// isolation.
    private static let inheritedVariables = ["HOME", "XDG_CONFIG_HOME", "CREDENTIALS_DIRECTORY", "PGPASSFILE"]

    /// The child's whole environment.
    var environment: [String] {
        func inherited(_ name: String, or value: String? = nil) -> [String] {
            (getenv(name).map { String(cString: $0) } ?? value).map { ["\(name)=\($0)"] } ?? []
        }
        return inherited("PATH", or: "/usr/local/bin:/usr/bin:/bin") + inherited("TMPDIR", or: "/tmp")
            + Self.inheritedVariables.flatMap { inherited($0) } + ["LANG=C.UTF-8"]
    }

    /// The program that starts children, installed with the running one: beside it in a build, else in
    /// `../lib/crudd`.
    ///
    /// - Throws: ``PluginLoadingError`` where it is missing.
    package static func findLauncher() throws(PluginLoadingError) -> String {
        guard let own = realpath("/proc/self/exe", nil) else {
            throw PluginLoadingError("/proc/self/exe cannot be resolved")
        }
        defer { free(own) }
        let folder = String(cString: own).split(separator: "/").dropLast().map { "/\($0)" }.joined()
        let candidates = ["\(folder)/crudd-plugin-host", "\(folder)/../lib/crudd/crudd-plugin-host"]
        guard let found = candidates.first(where: { access($0, X_OK) == 0 }) else {
            throw PluginLoadingError(
                "there is no crudd-plugin-host, which runs plugins in child processes: looked for "
                    + candidates.joined(separator: ", "))
        }
        return found
    }
}
