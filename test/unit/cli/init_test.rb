# frozen_string_literal: true

require_relative "../config/config_test_case"
require "stringio"
require "pando/cli"

class InitTest < ConfigTestCase
  PUMA = "threads 1, 5\nmin_threads 1\nport 4000\nworkers 2\n"

  def test_translates_the_file_of_puma
    write("config/puma.rb", PUMA)
    output, complaint, status = init

    assert_equal ["", 0], [complaint, status]
    assert_equal "wrote config/pando.rb from config/puma.rb\nlines kept: 1, translated: 2, left as comments: 1; see " \
                 "the lines that begin with \"# pando:\"\nnext: pando --check\n", output
    config = load_config
    assert_equal [["0.0.0.0:4000"], 2, 5], [config.listen.map(&:to_s), config.workers, config.threads]
  end

  def test_a_node_that_is_missing_is_the_last_that_is_said
    write("config/puma.rb", "unless Fizzy.saas?\n  plugin :solid_queue\nend\n")

    assert_equal ["jobs: plugin :solid_queue is in the lines left as comments. Write into config/pando.rb, unless " \
                  "bin/jobs runs them elsewhere:\n",
                  "  node :solid_queue, queue_file: true, shared: true, require: \"./config/environment.rb\"\n",
                  "next: pando --check\n"], init.first.lines.last(3)
  end

  def test_never_replaces_a_file_unasked
    write("config/puma.rb", PUMA)
    write("config/pando.rb", "workers 7\n")

    assert_equal ["", "pando: config/pando.rb already exists. pando init --force replaces it, --stdout shows what " \
                      "it would write\n", 2], init
    assert_equal "workers 7\n", File.read(File.join(@dir, "config/pando.rb"))
    assert_equal 0, init("--force").last
    assert_equal 2, load_config.workers
  end

  def test_writes_to_stdout
    write("config/puma.rb", PUMA)
    output, complaint, status = init("--stdout")

    assert_equal ["", 0], [complaint, status]
    assert_match(/^listen ".*:4000" # was: port 4000$/, output)
    refute_path_exists File.join(@dir, "config/pando.rb")
  end

  def test_finds_the_files_of_other_servers
    { "config/puma/production.rb" => "workers 3", "config/pitchfork.rb" => "worker_processes 3",
      "config/unicorn.rb" => "worker_processes 3", "unicorn.conf.rb" => "worker_processes 3" }.each do |name, line|
      FileUtils.rm_rf(Dir[File.join(@dir, "*")])
      write(name, line)

      assert_includes init.first, "wrote config/pando.rb from #{name}\n"
      assert_equal 3, load_config.workers, name
    end
  end

  def test_takes_a_file_by_its_name
    write("config/puma.rb", "workers 1")
    write("deploy/web/puma.rb",
          "pidfile \"\#{__dir__}/web.pid\"\nworkers 4\nbind \"unix://\#{File.dirname(__FILE__)}/a.sock\"")

    assert_equal 0, init("deploy/web/puma.rb").last
    config = load_config
    assert_equal [4, ["unix:#{@dir}/deploy/web/a.sock"]], [config.workers, config.listen.map(&:to_s)]
    assert_equal ["", "pando: there is no file #{@dir}/nowhere.rb\n", 2], init("nowhere.rb", "--force")
  end

  def test_another_directory_and_another_target
    write("shop/config/puma.rb", PUMA)

    assert_includes init("-C", "shop", "-c", "config/web.rb").first, "wrote config/web.rb from config/puma.rb"
    assert_path_exists File.join(@dir, "shop/config/web.rb")
  end

  def test_a_file_that_is_no_ruby
    write("config/puma.rb", "workers 2\nport (\n")

    assert_equal ["", "pando: config/puma.rb cannot be translated: line 2. Is it Ruby? (ruby -c config/puma.rb)\n", 2],
                 init
    refute_path_exists File.join(@dir, "config/pando.rb")
  end

  def test_a_file_that_cannot_be_read
    File.binwrite(write("config/puma.rb", ""), "workers 2 # \xE4\n")
    assert_equal ["", "pando: #{@dir}/config/puma.rb is not written in UTF-8\n", 2], init

    FileUtils.rm(File.join(@dir, "config/puma.rb"))
    FileUtils.mkdir_p(File.join(@dir, "config/unicorn.rb"))
    assert_equal 0, init.last
  end

  def test_does_not_run_the_file
    write("config/puma.rb", "File.write(\"ran\", \"\")\nraise \"I was run\"")

    assert_equal 0, init.last
    refute_path_exists File.join(@dir, "ran")
  end

  def test_a_starting_file_without_any_other
    assert_equal ["wrote config/pando.rb\nnext: pando --check\n", "", 0], init
    refute_includes File.read(File.join(@dir, "config/pando.rb")), "solid_queue"
    assert_equal "default", load_config.source(:workers)
    assert_equal ["0.0.0.0:4000"], starting_file_with("PORT" => "4000").listen.map(&:to_s)
  end

  # As in a Compose file whose variables are not set.
  def test_a_starting_file_where_the_variables_are_empty
    assert_equal 0, init.last
    config = starting_file_with("PORT" => "", "WEB_CONCURRENCY" => "")

    assert_equal %w[default default], [config.source(:listen), config.source(:workers)]
  end

  def test_what_a_starting_file_says_of_the_address_is_so
    assert_equal 0, init.last
    said = File.read(File.join(@dir, "config/pando.rb"))[/^# Where to listen.*?^(?!# )/m].scan(/[\d.]+:\d+/)
    outside = load_config.listen.map(&:to_s)
    %w[config/application.rb config/environment.rb].each { |name| write(name, "") }
    production, development = %w[production development].map do |name|
      load_config(env: { "RACK_ENV" => name }).listen.map(&:to_s)
    end

    assert_equal [outside, production, development].flatten, said.first(3)
  end

  def test_in_a_bundle_the_next_command_is_the_bundles
    assert_equal "next: bundle exec pando --check\n", init(env: { "BUNDLE_GEMFILE" => "Gemfile" }).first.lines.last
  end

  def test_a_starting_file_names_the_nodes_of_the_gems_that_are_there
    write("Gemfile.lock", "GEM\n  specs:\n    sidekiq (7.3.0)\n    solid_queue (1.2.0)\n")

    assert_equal 0, init.last
    text = File.read(File.join(@dir, "config/pando.rb"))
    write("config/pando.rb", text.gsub(/^# (?=node|listen|workers|timeout|memory|refork|self_test)/, ""))
    assert_equal %i[solid_queue sidekiq], load_config.nodes.map(&:runner)
  end

  private

  # The file asks the process's own environment.
  def starting_file_with(environment)
    before = environment.to_h { |name, _| [name, ENV.fetch(name, nil)] }
    ENV.update(environment)
    load_config(env: environment)
  ensure
    ENV.update(before)
  end

  def init(*arguments, env: {})
    out = StringIO.new
    err = StringIO.new
    status = Dir.chdir(@dir) do
      Pando::CLI.run(["init", *arguments], out: out, err: err, env: { "PWD" => @dir, **env })
    end
    [out.string, err.string, status]
  end
end
