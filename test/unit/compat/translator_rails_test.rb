# frozen_string_literal: true

require_relative "translation_test_case"
require "fileutils"
require "tmpdir"
require "pando/config"

# What the config file of a Rails app expects of the app and of Puma.
class CompatTranslatorRailsTest < TranslationTestCase
  # Of Pando, `-e` and three variables name it.
  def test_the_environment_of_rails
    [["Rails.env.local?", "%w[development test].include?(environment)"],
     ["::Rails.env.production?", "(environment == \"production\")"],
     ["Rails.env == 'production'", "environment == 'production'"],
     ["Rails.env.in?(%w[staging production])", "(%w[staging production]).include?(environment)"],
     ["ENV.fetch('RAILS_ENV') { 'development' } == 'test'", "environment == 'test'"],
     ["ENV.fetch(\"RAILS_ENV\", \"development\") == 'test'", "environment == 'test'"],
     ["ENV['RAILS_ENV'] == 'test'", "ENV['RAILS_ENV'] == 'test'"],
     ["ENV.fetch('RAILS_ENV', 'test') == 'test'", "ENV.fetch('RAILS_ENV', 'test') == 'test'"]]
      .each { |line, expected| assert_translated "workers 2 if #{expected}", "workers 2 if #{line}" }

    { "environment Rails.env" => nil, "stage = Rails.env" => "stage = environment",
      "on_booted { puts Rails.env }" => "after_monitor_ready { puts environment }" }
      .each { |line, expected| assert_translated expected, line }
    assert_includes body("case Rails.env\nwhen 'test'\n  workers 1\nend\n"), "case environment # was: case Rails.env\n"
  end

  def test_a_branch_for_an_environment_that_a_flag_names
    puma = "unless Rails.env.local?\n  workers 3\nend\nmine = ENV.fetch('RAILS_ENV') { 'development' }\n" \
           "environment mine\nthreads 5 if mine == 'production'\n"
    Dir.mktmpdir("pando-compat") do |folder|
      FileUtils.mkdir(File.join(folder, "config"))
      File.write(File.join(folder, "config/pando.rb"), translate(puma))
      config = Pando::Config.load(%w[-e production], env: {}, dir: folder)

      assert_equal [3, 5, "-e"], [config.workers, config.threads, config.source(:environment)]
    end
  end
end
