import ArgumentParser
import Glibc

/// The consent to a deletion: `--yes`, or a reply on the terminal.
struct Confirmation: ParsableArguments {
    @Flag(help: "Do not ask for confirmation.") var yes = false

    /// Checks that there is a way to consent: to be called by a command after it has checked what is to be deleted, so
    /// that nobody is led to `--yes` by a command that is incomplete.
    func check() throws {
        guard yes || isatty(STDIN_FILENO) == 1 else {
            throw ValidationError("There is no terminal to ask for confirmation: give --yes.")
        }
    }

    /// Whether the user consents; if not, they are told that nothing happens.
    ///
    /// - Parameter question: what to ask; not evaluated with `--yes`.
    func isGiven(_ question: () async throws -> String) async throws -> Bool {
        if yes { return true }
        StandardError.write("\(try await question().withVisibleControls) [y/N] ")
        if ["y", "yes"].contains(Self.reply.lowercased()) { return true }
        StandardError.write("crudctl: nothing has been deleted\n")
        return false
    }

    /// A line from the terminal, which has at most as many bytes.
    private static var reply: String {
        var line = [UInt8](repeating: 0, count: 4096)
        let count = FileInput.read(STDIN_FILENO, into: &line)
        return String(decoding: line.prefix(max(0, count)).prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
    }

    /// A number of records, in words.
    static func records(_ count: Int?) -> String {
        count.map { "\($0) record\($0 == 1 ? "" : "s")" } ?? "the records"
    }
}
