# frozen_string_literal: true

require "test_helper"
require_relative "../../../bin/lib/findings_table"

# docs/doctor.md says what there is.
class FindingsTableTest < Minitest::Test
  def test_the_page_has_every_kind_of_finding
    page = File.read(FindingsTable::PAGE)

    assert_equal(FindingsTable.renew(page), page, "run: ruby -Ilib bin/lib/findings_table.rb")
    Pando::ForkSafety::Finding::KINDS.each_key { |name| assert_includes(page, "| `#{name}` |") }
  end

  def test_the_page_has_every_flag
    require "pando/cli/doctor"
    page = File.read(FindingsTable::PAGE)

    Pando::CLI::Doctor.switches.each { |switch| assert_includes(page, "| `#{switch.flags.first}") }
  end
end
