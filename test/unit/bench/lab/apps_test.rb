# frozen_string_literal: true

require_relative "../bench_helper"
require "support/lab/apps"

# Each app is known by its name and answers what the lab asks.
class LabAppsTest < Minitest::Test
  APPS = Bench::Lab::Apps

  def test_each_app_answers_what_the_lab_asks_of_it
    assert_includes APPS.names, "redmine"
    APPS.names.each do |name|
      app = APPS.build(name)

      assert_empty(%i[bundle prepare environment traffic].reject { |method| app.respond_to?(method) }, name)
    end
  end

  def test_an_app_takes_of_the_options_what_is_its_own
    environment = APPS.build("constants", methods: 7, redmine: "/nowhere").environment("")

    assert_equal "7", environment["BENCH_METHODS"]
    assert_path_exists environment["LAB_APP"]
  end

  def test_a_folder_that_is_no_redmine_is_refused
    error = assert_raises(APPS::Failed) { APPS.build("redmine", redmine: __dir__).prepare(nil) }

    assert_includes error.message, __dir__
  end
end
