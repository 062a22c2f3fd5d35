# frozen_string_literal: true

require "test_helper"
require "pando/doctor/reference"
require "pando/doctor/report"

# docs/doctor.md says what there is.
class DoctorReferenceTest < Minitest::Test
  Reference = Pando::Doctor::Reference

  def test_the_page_has_every_kind_of_finding
    page = File.read(Reference::PAGE)

    assert_equal(Reference.renew(page), page, "ruby -Ilib -rpando/doctor/reference -e #{Reference}.write")
    Pando::ForkSafety::Finding::KINDS.each_key { |name| assert_includes(page, "| `#{name}` |") }
  end

  def test_the_page_has_every_flag
    require "pando/cli/doctor"
    page = File.read(Reference::PAGE)

    Pando::CLI::Doctor.switches.each { |switch| assert_includes(page, "| `#{switch.flags.first}") }
  end
end
