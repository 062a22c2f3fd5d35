# frozen_string_literal: true

require "pando/fork_safety/finding"

# Generates the table of findings in docs/doctor.md from their kinds. After a change to a kind, write the page anew:
#
#   ruby -Ilib bin/lib/findings_table.rb
module FindingsTable
  PAGE = File.expand_path("../../docs/doctor.md", __dir__)
  BEGINNING = "<!-- kinds -->\n"
  ENDING = "<!-- end of kinds -->\n"

  # @return [String] in Markdown
  def self.table
    rows = Pando::ForkSafety::Finding::KINDS.map do |name, kind|
      "| `#{name}` | #{kind.severity} | #{kind.help} | #{kind.advice} |\n"
    end
    "| kind | severity | what it is | the usual change |\n|---|---|---|---|\n#{rows.join}"
  end

  # @param page [String]
  # @return [String] the page with the current table
  def self.renew(page)
    page.sub(/#{BEGINNING}.*#{ENDING}/m) { "#{BEGINNING}#{table}#{ENDING}" }
  end
end

File.write(FindingsTable::PAGE, FindingsTable.renew(File.read(FindingsTable::PAGE))) if $PROGRAM_NAME == __FILE__
