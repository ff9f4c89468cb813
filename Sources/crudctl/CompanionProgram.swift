import CRUDClient
import Glibc

/// A program that is installed together with crudctl, which itself needs neither YAML nor plugins.
struct CompanionProgram {
    let name: String
    /// Its folder, relative to the `bin` in which crudctl is installed.
    let installedFolder: String

    static let daemon = CompanionProgram(name: "crudd", installedFolder: "../sbin")
    static let pluginCheck = CompanionProgram(name: "crudd-plugin-check", installedFolder: "../lib/crudd")

    /// A path as an argument, which is never taken for an option.
    static func argument(path: String) -> String { path.hasPrefix("-") ? "./\(path)" : path }

    /// Runs it until it exits.
    ///
    /// - Parameter printsOutput: whether its standard output is this program's; else the outcome has it.
    /// - Throws: ``CRUDError`` with `unavailable` if it cannot be run.
    func run(_ arguments: [String], printsOutput: Bool = false) throws -> CompanionOutcome {
        // Files without a name: a program that fills a pipe would wait for a reader.
        guard let output = unsafe tmpfile(), let errors = unsafe tmpfile() else {
            throw CRUDError(.unavailable, "cannot make a temporary file: \(ErrorNumber.message)")
        }
        defer {
            unsafe fclose(output)
            unsafe fclose(errors)
        }
        let path = path
        // The copies live until the program has been started.
        let words = unsafe ([name] + arguments).map { strdup($0) } + [nil]
        defer { for word in unsafe words { unsafe free(word) } }
        var actions = posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        if !printsOutput { unsafe posix_spawn_file_actions_adddup2(&actions, fileno(output), STDOUT_FILENO) }
        unsafe posix_spawn_file_actions_adddup2(&actions, fileno(errors), STDERR_FILENO)
        var pid: pid_t = 0
        errno = unsafe posix_spawnp(&pid, path, &actions, nil, words, environ)
        guard errno == 0 else { throw CRUDError(.unavailable, "cannot run \(path): \(ErrorNumber.message)") }
        // It stays like this where nobody can wait for a child, because SIGCHLD is ignored.
        var word = EX_SOFTWARE << 8
        while unsafe waitpid(pid, &word, 0) < 0, errno == EINTR {}
        // The macros of <sys/wait.h>, which Swift does not import.
        let signal = word & 0x7F
        let death = signal == 0 ? "" : "\(name): killed by signal \(signal)\n"
        return CompanionOutcome(
            program: self, status: signal == 0 ? word >> 8 & 0xFF : EX_SOFTWARE,
            output: try unsafe Self.text(of: output), errors: try unsafe Self.text(of: errors) + death)
    }

    /// - Parameter file: an open file.
    private static func text(of file: UnsafeMutablePointer<FILE>) throws -> String {
        unsafe rewind(file)
        return unsafe String(decoding: try TextSource.read(fileno(file), "its output"), as: UTF8.self)
    }

    /// Beside crudctl (after a build), in its folder (when installed), or else in `$PATH`.
    private var path: String {
        guard let own = Self.ownPath, let slash = own.lastIndex(of: "/") else { return name }
        let directory = own[..<slash]
        return ["\(directory)/\(name)", "\(directory)/\(installedFolder)/\(name)"].first { access($0, X_OK) == 0 }
            ?? name
    }

    /// Where crudctl itself is.
    static var ownPath: String? {
        var buffer = [UInt8](repeating: 0, count: Int(PATH_MAX))
        let count = buffer.withUnsafeMutableBytes { bytes in
            // The buffer is not empty, so that it has an address.
            unsafe readlink("/proc/self/exe", bytes.assumingMemoryBound(to: CChar.self).baseAddress!, bytes.count)
        }
        return count > 0 ? String(decoding: buffer[..<count], as: UTF8.self) : nil
    }
}
