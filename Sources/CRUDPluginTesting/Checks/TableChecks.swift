import CRUDJSON
import CRUDPluginABI

#if canImport(Glibc)
import Glibc
#endif

/// The plugin by itself.
enum TableChecks {
    static func table(_ trial: Trial) throws {
        trial.expect(trial.plugin.table.pointee.abi_version, is: CRUDD_ABI_VERSION, "abi_version")
        trial.expect(!trial.plugin.name.isEmpty, "the plugin has no name")
        trial.expect(!trial.plugin.version.isEmpty, "the plugin has no version")
        let known =
            CRUDD_CAN_READ_CONCURRENTLY | CRUDD_CAN_READ_FAST | CRUDD_HAS_TRANSACTIONS | CRUDD_IS_DURABLE
            | CRUDD_CAN_QUERY
        trial.expect(trial.plugin.capabilities & ~UInt64(known), is: 0, "capabilities that there are not")
        checkDependencies(trial.plugin.capabilities, trial)
        trial.expect(
            trial.plugin.table.pointee.query != nil || trial.plugin.capabilities & UInt64(CRUDD_CAN_QUERY) == 0,
            "CRUDD_CAN_QUERY is declared without `query`")
    }

    static func capabilities(_ trial: Trial) throws {
        let capabilities = try trial.open().capabilities
        trial.expect(
            capabilities & ~trial.plugin.capabilities, is: 0,
            "backend_capabilities has what the plugin does not declare")
        checkDependencies(capabilities, trial)
    }

    private static func checkDependencies(_ capabilities: UInt64, _ trial: Trial) {
        trial.expect(
            capabilities & UInt64(CRUDD_CAN_READ_FAST) == 0 || capabilities & UInt64(CRUDD_CAN_READ_CONCURRENTLY) != 0,
            "CRUDD_CAN_READ_FAST is declared without CRUDD_CAN_READ_CONCURRENTLY")
    }

    /// The options that are given are valid, and looking at them changes nothing at the paths among them.
    static func options(_ trial: Trial) throws {
        let paths = absolutePaths(in: trial.options)
        let before = paths.map(state)
        let fault = trial.plugin.fault(inOptions: trial.options)
        trial.expect(fault == nil, "the options that were given: \(fault.map { "\($0)" } ?? "")")
        for (path, state) in zip(paths, before) {
            trial.expect(self.state(of: path), is: state, "\(path) has been touched")
        }
    }

    /// Whatever the options are, the answer is one that the host can read.
    static func oddOptions(_ trial: Trial) throws {
        let long = String(repeating: "\u{1F600}", count: 2000)
        for options in [#"{"crudd-check": true}"#, #"{"\#(long)": "\#(long)"}"#, #"{"a/b~c": {"d": [null, 1e999]}}"#] {
            guard let fault = trial.plugin.fault(inOptions: options) else { continue }
            trial.expect(fault.status == CRUDD_INVALID_OPTIONS, "\(Excerpt(options)): \(fault)")
            trial.expect(
                fault.pointer.isEmpty || fault.pointer.hasPrefix("/"),
                "\(Excerpt(options)): \"\(fault.pointer)\" is no JSON pointer")
        }
    }

    // MARK: Paths

    /// The strings among the options that look like paths, and the directories that they lie in.
    private static func absolutePaths(in options: String) -> [String] {
        let text = Array(options.utf8)
        var scanner = JSONScanner()
        var paths: [String] = []
        do {
            scanner.enter()
            var isFirst = true
            while try scanner.nextKey(text.span, isFirst: &isFirst) != nil {
                let value = try scanner.value(text.span)
                guard value.kind == .string else { continue }
                let path = String(decoding: value.decodedString(text.span), as: UTF8.self)
                guard path.hasPrefix("/"), let slash = path.lastIndex(of: "/") else { continue }
                paths += [path, String(path[..<slash])]
            }
        } catch {
            // The plugin has told already what is wrong with them.
        }
        return paths
    }

    /// What changes whenever something at a path does; empty if nothing is there.
    private static func state(of path: String) -> [Int] {
        var status = stat()
        guard lstat(path, &status) == 0 else { return [] }
        return [
            Int(status.st_ino), Int(status.st_size), status.st_mtim.tv_sec, status.st_mtim.tv_nsec,
            status.st_ctim.tv_sec, status.st_ctim.tv_nsec,
        ]
    }
}
