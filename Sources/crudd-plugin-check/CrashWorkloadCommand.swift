import CRUDPluginHost
import CRUDPluginTesting

/// The process that the conformance suite kills while it writes.
enum CrashWorkloadCommand {
    static let option = "--crash-workload"

    /// What runs this command for the plugin at a path.
    static func program(_ path: String, inChild: Bool) -> CrashWorkloadProgram {
        CrashWorkloadProgram(path: "/proc/self/exe", arguments: [option, path, inChild ? "child" : "here"])
    }

    /// - Parameter words: the plugin's path, `child` or `here`, options in JSON, format, collection, and the number of
    ///   the first batch.
    static func run(_ words: [String]) -> Int32 {
        guard words.count == 6, let number = Int(words[5]) else { return 64 }  // EX_USAGE
        do {
            let plugin = try CheckCommand.load(words[0], inChild: words[1] == "child", options: Array(words[2].utf8))
            try CrashWorkload.write(
                ExportedPlugin(plugin), options: words[2], format: words[3], collection: words[4], from: number)
        } catch {
            StandardStream.error.write("crudd-plugin-check: \(error)\n")
            return 70  // EX_SOFTWARE
        }
    }
}
