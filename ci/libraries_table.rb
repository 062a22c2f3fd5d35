# frozen_string_literal: true

require "pando/fork_safety/libraries/known"

# Writes the table in docs/libraries.md from the rows in lib/pando/fork_safety/libraries/known.
module LibrariesTable
  PATH = File.expand_path("../docs/libraries.md", __dir__)
  FIRST = "<!-- from lib/pando/fork_safety/libraries/known -->\n"
  LAST = "<!-- end of the table -->\n"
  VERDICTS = { fine: "fine", handled: "handled", limits_reforking: "limits reforking", refused: "**refused**",
               unknown: "unknown" }.freeze

  class << self
    # @return [String] Markdown
    def table
      libraries = Pando::ForkSafety::Libraries::Known.all
      rows = libraries.flat_map { |library| library.rules.map { |rule| row(library, rule) } }
      "| library | version | verdict | what happens at a fork | source |\n|---|---|---|---|---|\n#{rows.join}"
    end

    # Replaces the table in the page.
    def write(path = PATH)
      text = File.read(path)
      File.write(path, text.sub(/(?<=#{Regexp.escape(FIRST)}).*(?=#{Regexp.escape(LAST)})/m) { table })
    end

    private

    def row(library, rule)
      versions = [versions_of(rule), rule.given].compact.join("; ")
      note = [rule.note, ("**#{rule.advice}**" if rule.advice)].compact.join(" ")
      name = library.tested? ? library.name : "#{library.name} (not tested here)"
      "| #{name} | #{versions} | #{VERDICTS.fetch(rule.verdict)} | #{note} | #{source(rule.source)} |\n"
    end

    def versions_of(rule)
      return "any" unless rule.since || rule.before

      [("#{rule.since} or newer" if rule.since), ("before #{rule.before}" if rule.before)].compact.join(", ")
    end

    def source(text)
      text.gsub(%r{https://github\.com/([\w.-]+/[\w.-]+)[^\s,]*}, '[\1](\0)')
    end
  end
end

LibrariesTable.write if $PROGRAM_NAME == __FILE__
