# frozen_string_literal: true

require "test_helper"
require "pando/config/reference"

class ReferenceTest < Minitest::Test
  Reference = Pando::Config::Reference

  def test_the_page_is_up_to_date
    assert_equal Reference.new.markdown, File.read(Reference::PATH, encoding: "UTF-8"),
                 "run: ruby -Ilib -rpando/config/reference -e Pando::Config::Reference.write"
  end

  def test_the_page_names_every_setting_flag_and_variable
    page = Reference.new.markdown

    Pando::Config::Settings.all.each do |setting|
      assert_includes page, "### #{setting.title}\n"
      [*setting.flags, *setting.env].each { |name| assert_includes page, "`#{name}" }
    end
  end
end
