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

  def test_a_plugin_without_an_equal_has_a_remark_of_its_own
    { ":tmp_restart" => "Pando watches tmp/restart.txt", ":yabeda" => "A plugin of Puma: Pando has Prometheus metrics",
      "'yabeda_prometheus'" => "A plugin of Puma: mount Yabeda::Prometheus::Exporter",
      ":statsd" => "A plugin of Puma, which Pando does not run: what it does belongs in a hook" }
      .each { |name, remark| assert_match(/\A# pando: #{remark}.*\n# plugin #{name}\n\z/, body("plugin #{name}\n")) }
  end

  # A call has a side effect, and asks nothing.
  def test_a_call_of_the_app_is_told_its_place
    place = " #{Pando::Compat::Translator::APP_CODE}"
    ["Shop.disconnect_all", "Shop::Cache.warm(1) if ENV['A']", "Shop.each do |one|\n  one.close\nend", "Shop.set 1"]
      .each { |call| assert_match(/\A# pando: \w+ is not loaded .* instead\.#{place}\n/, body("#{call}\n")) }
    ["x = Shop.count", "workers Shop.count", "if Shop.big?\n  workers 1\nend", "workers 1 if Shop.big?", "@a.b"]
      .each { |other| refute_includes body("#{other}\n"), place }
  end

  # In Puma these blocks run once; each fork of a worker of Pando would compact the heap that others share.
  def test_a_hook_at_a_fork_that_only_collects_is_left_out
    ["before_fork { Process.warmup }", "before_fork do GC.start(full_mark: true); GC.compact end",
     "on_worker_boot { GC.compact if GC.respond_to?(:compact) }", "before_fork { 3.times { GC.start } }",
     "on_refork { ::Process.warmup() }"].each do |line|
      assert_equal "# pando: #{Pando::Compat::CollectorLines::MOLD}\n# #{line}\n", body("#{line}\n")
    end
    assert_translated nil, "after_mold_fork { |_server, _mold| Process.warmup }", name: "config/pitchfork.rb"
    ["before_worker_shutdown { GC.start }", "before_fork { A.warmup }", "before_fork { GC.disable }"]
      .each { |line| assert_translated line.sub("worker_shutdown", "worker_exit"), line }
  end

  def test_the_other_statements_of_the_hook_stay
    puma = "before_fork do # one\n  # two\n  A.b\n\n  Process.warmup # three\n  A.c do\n    1\n  end\nend\n"

    assert_equal <<~RUBY, body(puma)
      # pando: #{Pando::Compat::Blocks::EACH_FORK} Without the lines for the garbage collector: #{Pando::Compat::CollectorLines::MOLD}
      before_fork do # one
        # two
        A.b

        # Process.warmup # three
        A.c do
          1
        end
      end
    RUBY
    assert_translated "before_fork { A.b; A.c }", "before_fork { GC.start; A.b; GC.compact; A.c }"
    translation = Pando::Compat::Translator.new("before_fork do\n  A.b\n  GC.start\nend\n", "config/puma.rb").call

    assert_equal [3, 0, 1], [translation.kept, translation.translated, translation.left_out]
  end

  # Puma's recipe has two halves. Without out_of_band, the worker would never run a major collection.
  def test_what_belongs_to_collections_out_of_band_goes_with_them
    puma = "before_worker_boot do\n  # off\n  GC.config(rgengc_allow_full_mark: false)\nend\nout_of_band { GC.start }\n"

    assert_equal <<~RUBY, body(puma)
      # pando: `gc major: :auto`, the default, decides when major GCs run (docs/sharing.md).
      # before_worker_boot do
      #   # off
      #   GC.config(rgengc_allow_full_mark: false)
      # end
      # pando: Pando collects garbage between requests (docs/sharing.md).
      # out_of_band { GC.start }
    RUBY
    { "on_worker_boot { GC.config rgengc_allow_full_mark: true }" => nil,
      "on_worker_shutdown { GC.config(rgengc_allow_full_mark: true) if GC.respond_to?(:config) }" => nil,
      "on_worker_boot { A.b; GC.config(:rgengc_allow_full_mark => false) }" => "after_worker_fork { A.b }" }
      .each { |line, expected| assert_translated expected, line }
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
