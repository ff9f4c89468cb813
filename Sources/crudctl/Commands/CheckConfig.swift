import ArgumentParser
import CRUDClient
import Glibc

/// Becomes `crudd --check`, so that crudctl needs neither a daemon nor a YAML parser of its own.
struct CheckConfig: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "check-config",
        abstract: "Checks a configuration file, without a daemon, and prints every fault with its place.")

    @ParentCommand var root: Crudctl
    @OptionGroup(title: "Global options") var options: GlobalOptions
    @Argument(help: "The file (default: /etc/crudd/crudd.yaml).", completion: .file(extensions: ["yaml", "yml"]))
    var file: String?

    func run() async throws {
        let program = Self.program
        let arguments = ["crudd", "--check"] + (file.map { [$0] } ?? [])
        // The copies live on until another program has taken this one's place.
        let copies = unsafe arguments.map { strdup($0) } + [nil]
        unsafe execvp(program, copies)
        throw CRUDError(.unavailable, "cannot run \(program): \(ErrorNumber.message)")
    }

    /// The daemon beside this program (as it was built), in the `sbin` beside its `bin` (as it is installed), or else
    /// wherever `$PATH` has it.
    private static var program: String {
        guard let own = ownPath, let slash = own.lastIndex(of: "/") else { return "crudd" }
        let directory = own[..<slash]
        return ["\(directory)/crudd", "\(directory)/../sbin/crudd"].first { access($0, X_OK) == 0 } ?? "crudd"
    }

    private static var ownPath: String? {
        var buffer = [UInt8](repeating: 0, count: Int(PATH_MAX))
        let count = buffer.withUnsafeMutableBytes { bytes in
            // The buffer is not empty, so that it has an address.
            unsafe readlink("/proc/self/exe", bytes.assumingMemoryBound(to: CChar.self).baseAddress!, bytes.count)
        }
        return count > 0 ? String(decoding: buffer[..<count], as: UTF8.self) : nil
    }
}
