# frozen_string_literal: true

require "test_helper"
require "pando/config"
require_relative "../../../bin/lib/configuration_page"

class SettingsTest < Minitest::Test
  Settings = Pando::Config::Settings

  def test_every_setting_has_one_line_of_help
    Settings.all.each do |setting|
      assert_match(/\A[A-Z].*\.\z/, setting.help, setting.name)
    end
  end

  def test_every_setting_is_in_one_group
    assert_equal Settings.all, Settings.groups.values.flatten
  end

  def test_every_setting_that_a_file_can_have_shows_an_example_that_loads
    Settings.all.reject(&:flag_only?).each do |setting|
      example = ConfigurationPage.example(setting)
      next if setting.keyword && example.nil?

      recorder = Pando::Config::Recorder.new(values = Pando::Config::Values.new({}), "/")
      Pando::Config::DSL.new(recorder).binding_of_file.eval(example)

      assert values.set_by_file?(setting.name), setting.name
    end
  end

  def test_no_setting_takes_the_name_of_a_method_that_every_object_has
    taken = Object.new.methods + Kernel.private_instance_methods(false)

    assert_empty (Settings.file_names + Pando::Hooks::NAMES) & taken
  end

  def test_hints_for_foreign_names_are_for_names_that_pando_does_not_have
    names = [*Settings.all.map(&:name), *Settings.file_names, *Pando::Hooks::NAMES].map(&:name)

    assert_empty names & Pando::Compat::Names::SETTINGS.keys
  end
end
