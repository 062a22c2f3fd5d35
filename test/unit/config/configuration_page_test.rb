# frozen_string_literal: true

require "test_helper"
require_relative "../../../bin/lib/configuration_page"

# docs/configuration.md against the table of settings.
class ConfigurationPageTest < Minitest::Test
  def test_the_page_is_up_to_date
    assert_equal ConfigurationPage.new.markdown, File.read(ConfigurationPage::PATH, encoding: "UTF-8"),
                 "run: ruby -Ilib bin/lib/configuration_page.rb"
  end

  def test_each_note_belongs_to_a_setting
    assert_empty ConfigurationPage::NOTES.keys - Pando::Config::Settings.all.map { |setting| setting.name.name }
  end

  def test_the_page_names_every_setting_flag_and_variable
    page = ConfigurationPage.new.markdown

    Pando::Config::Settings.all.each do |setting|
      assert_includes page, "### #{setting.title}\n"
      [*setting.flags, *setting.env].each { |name| assert_includes page, "`#{name}" }
    end
  end
end
