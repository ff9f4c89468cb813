import Glibc

let words = Array(CommandLine.arguments.dropFirst())
exit(
    words.first == CrashWorkloadCommand.option
        ? CrashWorkloadCommand.run(Array(words.dropFirst())) : CheckCommand.run(words))
