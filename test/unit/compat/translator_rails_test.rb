# frozen_string_literal: true

require_relative "translation_test_case"
require "fileutils"
require "tmpdir"
require "pando/config"

# What the config file of a Rails app expects of the app and of Puma.
class CompatTranslatorRailsTest < TranslationTestCase
  NODE = 'node :solid_queue, queue_file: true, shared: true, require: "./config/environment.rb"'

  # Else a team would find out by its jobs that do not run.
  def test_a_node_that_is_left_out_is_named
    ["unless Fizzy.saas?\n  threads 1\n  plugin :solid_queue\nend\n", "plugin 'solid_queue' if Fizzy.saas?\n",
     "threads 1; plugin(:solid_queue) unless Fizzy.saas?\n"].each do |puma|
      translation = Pando::Compat::Translator.new(puma, "config/puma.rb").call
      remark = translation.text[/# pando: (Fizzy.*)/, 1]

      assert_operator remark, :start_with?, "Fizzy is not loaded"
      assert_operator remark, :end_with?, "With its plugin :solid_queue, jobs run only where SOLID_QUEUE_IN_PUMA=" \
                                          "true is set: write #{NODE}, unless bin/jobs runs them elsewhere."
      assert translation.jobs_left_out, puma
    end
  end

  def test_no_node_is_named_where_none_is_missing
    ["plugin :solid_queue\n", "plugin :solid_queue if ENV['SOLID_QUEUE_IN_PUMA']\n", "plugin :tmp_restart\n",
     "if Fizzy.saas?\n  plugin :yabeda # not plugin :solid_queue\nend\n",
     "plugin :solid_queue\nplugin :solid_queue if Fizzy.saas?\n"].each do |puma|
      refute Pando::Compat::Translator.new(puma, "config/puma.rb").call.jobs_left_out, puma
    end
  end

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
