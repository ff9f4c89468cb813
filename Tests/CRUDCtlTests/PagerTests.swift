import Testing

@testable import crudctl

/// Which pager is used.
@Suite struct PagerTests {
    @Test(
        arguments: [
            ([:], "less"), (["PAGER": "more"], "more"), (["PAGER": "more", "CRUDCTL_PAGER": "less -S"], "less -S"),
            (["PAGER": ""], nil), (["PAGER": "cat"], nil), (["PAGER": "more", "CRUDCTL_PAGER": ""], nil),
            (["PAGER": "more", "CRUDCTL_PAGER": "cat"], nil), (["PAGER": "cat", "CRUDCTL_PAGER": "more"], "more"),
        ] as [([String: String], String?)])
    func isChosenByVariables(_ variables: [String: String], _ command: String?) {
        #expect(Pager.command { variables[$0] } == command)
    }

    /// It may stand before a command, and alone it is an option of the prompt.
    @Test func anOptionPreventsIt() {
        #expect(CommandLineWords(["--no-pager", "query", "c"]).words == ["query", "--no-pager", "c"])
        #expect(CommandLineWords(["--no-pager"]).optionsAlone == ["--no-pager"])
    }
}
