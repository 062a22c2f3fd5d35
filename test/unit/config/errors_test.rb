# frozen_string_literal: true

require_relative "config_test_case"
require "minitest/mock"

# The errors for mistakes in the config file.
class ConfigErrorsTest < ConfigTestCase
  def self.says(message, text)
    define_method("test_#{text.inspect}") { assert_equal message, error_of(text) }
  end

  says "config/pando.rb:2: unknown setting wrokers. Did you mean workers?", "\nwrokers 4"
  says "config/pando.rb:1: unknown setting after_worker_frok. Did you mean after_worker_fork?", "after_worker_frok { }"
  says "config/pando.rb:1: unknown setting bogus_and_far_off.", "bogus_and_far_off"
  says "config/pando.rb:2: workers = ... only makes a local variable. Write workers without the equals sign.",
       "listen 80\nworkers = 4"

  says "config/pando.rb:1: unknown setting worker_processes. Write workers N.", "worker_processes 4"
  says "config/pando.rb:1: unknown setting refork_after. Write refork after: [N, ...].", "refork_after [50]"
  says "config/pando.rb:1: unknown setting preload_app!. Leave it out: the mold always loads the application before " \
       "workers are forked.", "preload_app!"
  says "config/pando.rb:1: unknown setting bind. Write listen \"HOST:PORT\" or listen \"unix:PATH\".",
       "bind 'tcp://0.0.0.0:80'"

  says "config/pando.rb:1: unknown setting cluster. Leave it out, and write the lines of its block.",
       "cluster do\n  workers 4\nend"

  says "config/pando.rb:1: unknown setting plugin. Leave plugin :tmp_restart out: restart_file does that. For plugin " \
       ":solid_queue write node :solid_queue, queue_file: true, shared: true, require: \"./config/environment.rb\". " \
       "Others: docs/coming-from-puma.md.", "plugin :solid_queue"
  says "config/pando.rb:1: listen must be HOST:PORT, PORT, [v6]:PORT, unix:PATH, unix:@ABSTRACT or systemd, but is " \
       "\"ssl://0.0.0.0:3000\": Pando speaks no TLS: let a proxy do that, and listen behind it.",
       'listen "ssl://0.0.0.0:3000"'

  says 'config/pando.rb:1: workers must be a whole number from 0 to 1024, or auto, but is "many".', "workers 'many'"
  says "config/pando.rb:1: workers must be a whole number from 0 to 1024, or auto, but is nil.", "workers ENV['NONE_']"
  says "config/pando.rb:1: workers must be a whole number from 0 to 1024, or auto, but is -1.", "workers -1"
  says "config/pando.rb:1: workers is 0 and the config file has no node line: nothing to run", "workers 0"
  says "config/pando.rb:1: workers needs a value: it must be a whole number from 0 to 1024, or auto", "workers"
  says "config/pando.rb:1: workers takes one value, but was given 2", "workers 1, 2"
  says "config/pando.rb:1: slow_log takes one value, and its file, but was given 3", "slow_log 2, 'a.log', :json"
  says "config/pando.rb:1: slow_log file: must be the path of a file, but is :stdout.", "slow_log 2, :stdout"
  says "config/pando.rb:1: access_log must be the path of a file, or :stdout, or false, but is :stderr.",
       "access_log :stderr"
  says "config/pando.rb:1: admin mode: must be permission bits from 0 to 0777, but is 666. Write 0666.",
       "admin 'unix:a.sock', mode: 666"
  says "config/pando.rb:2: token_file: holds for all addresses of admin, and config/pando.rb:1 has another value: " \
       "write it once", "admin 9394, token_file: 'a'\nadmin 9395, token_file: 'b'"
  says "config/pando.rb:1: workers takes no block", "workers(1) { }"
  says "config/pando.rb:1: workers has no option grace:.", "workers 1, grace: 3"

  says "config/pando.rb:1: timeout has no option grase:. Did you mean grace?", "timeout 20, grase: 2"
  says "config/pando.rb:1: timeout must be a number of seconds, more than 0 and at most a year, or false, but is nil.",
       "timeout nil"
  says "config/pando.rb:1: timeout grace: must be a number of seconds from 0 to a year, but is -1.",
       "timeout 1, grace: -1"

  says "config/pando.rb:1: jit must be true or false, but is :trainee.", "jit :trainee"
  says "config/pando.rb:1: jit must be true or false, but is :all.", "jit :all"

  says "config/pando.rb:1: rollout takes only options: surge:, unavailable:, canary: or safe_paths:", "rollout 1"
  says "config/pando.rb:1: rollout needs an option: surge:, unavailable:, canary: or safe_paths:", "rollout"
  says "config/pando.rb:1: rollout has no option canaries:. Did you mean canary?", "rollout canaries: {}"

  says "config/pando.rb:1: rollout canary: must be auto, false or a Hash of requests:, seconds: and longest:, but is " \
       "#{{ requests: 0 }.inspect}. requests: must be a whole number from 1 to 1000000, but is 0. Write canary: " \
       "false for a rollout without one.", "rollout canary: { requests: 0 }"
  says "config/pando.rb:1: health live: must not be /up, which is the path of health: the two answer different " \
       "questions", 'health "/up", live: "/up"'

  says "config/pando.rb:1: refork must be auto, manual, false or a list of numbers of requests, but is :atuo. " \
       "Did you mean auto?", "refork :atuo"
  says "config/pando.rb:1: refork must be auto, manual, false or a list of numbers of requests, but is 50. " \
       "Write refork after: [50].", "refork 50"
  says "config/pando.rb:1: refork after: must be a list of numbers of requests, 1 or more each, which false may end, " \
       "but is [false].", "refork after: [false]"
  says "config/pando.rb:1: refork needs a value: it must be auto, manual, false or a list of numbers of requests",
       "refork"
  says "config/pando.rb:1: refork prefer: must be balanced, memory or cpu, but is :speed.",
       "refork :auto, prefer: :speed"
  says "config/pando.rb:1: refork prefer: has no effect with refork :manual: leave it out",
       "refork :manual, prefer: :cpu"
  says "config/pando.rb:2: refork prefer: has no effect with refork after: [50, false]: leave it out",
       "refork after: [50, false]\nrefork prefer: :memory"
  says "config/pando.rb:1: refork failures: has no effect with refork false: leave it out", "refork false, failures: 2"

  says "config/pando.rb:1: memory hard: must be more than worker:, 64.mb, but is 32.mb",
       "memory worker: 64.mb, hard: 32.mb"

  says "config/pando.rb:1: response_memory must not be more than its total:, 1.mb, but is 8.mb. Write " \
       "response_memory 8.mb, total: 8.mb or more", "response_memory 8.mb, total: 1.mb"
  says "config/pando.rb:1: response_memory must not be more than its total:, 64.mb, but is 128.mb. Write " \
       "response_memory 128.mb, total: 128.mb or more", "response_memory 128.mb"

  says "config/pando.rb:1: fork_safety state: allow: has \"umaks\", which Pando does not check. Did you mean umask? " \
       "See docs/audit.md", 'fork_safety state: { allow: ["nice", "env TZ", "umaks"] }'
  says "config/pando.rb:1: fork_safety state: allow: has \"mood\", which Pando does not check. See " \
       "docs/audit.md", 'fork_safety state: { allow: ["mood"] }'

  says "config/pando.rb:1: listen backlog: must be a whole number from 1 to 65535, but is 0.", "listen 80, backlog: 0"
  says "config/pando.rb:1: listen takes no option mode: with 0.0.0.0:80.", "listen 80, mode: 0o600"
  says "config/pando.rb:1: listen takes no option umask: with 0.0.0.0:80.", "listen 'tcp://0.0.0.0:80?umask=0111'"
  says "config/pando.rb:1: listen has no option backlock: (in \"unix:a?backlock=5\"). Did you mean backlog?",
       "listen 'unix:a?backlock=5'"
  says "config/pando.rb:1: listen has no option what: (in \"unix:a?what\").", "listen 'unix:a?what'"
  says "config/pando.rb:1: listen umask: must be permission bits from 0 to 0777, but is \"0999\".",
       "listen 'unix:a?umask=0999'"
  says "config/pando.rb:1: listen must be HOST:PORT, PORT, [v6]:PORT, unix:PATH, unix:@ABSTRACT or systemd, but is " \
       "\"unix:\\xFF\": invalid byte sequence in UTF-8.", 'listen "unix:\xFF"'
  says "config/pando.rb:1: admin has no option backlog: (in \"unix:a?backlog=5\").", "admin 'unix:a?backlog=5'"
  says "config/pando.rb:1: listen has no option backlock:. Did you mean backlog?", "listen 80, backlock: 5"
  says "config/pando.rb:1: log_format must be text or json, but is :jason. Did you mean json?", "log_format :jason"
  says "config/pando.rb:1: directory can only be set on the command line: -C DIR", "directory '/srv'"

  says "config/pando.rb:1: after_worker_fork needs a block and nothing else", "after_worker_fork"
  says "config/pando.rb:1: service needs a name such as :mailer and a block", "service('mailer') { }"
  says "config/pando.rb:2: service :mailer is declared twice", "service(:mailer) { }\nservice(:mailer) { }"
  says "config/pando.rb:1: on needs the name of an event and a block", "on { }"

  def test_whatever_is_looked_at_may_be_allowed
    require "pando/fork_safety/process_state"
    names = Pando::ForkSafety::ProcessState.take.keys
    words = [*names, *names.map { |name| name[/\w+/] }, "env", "env TZ", "signal PIPE", "signal"].uniq
    config = load_config("fork_safety state: { allow: #{words.inspect} }")

    assert_equal words, config.fork_safety_state[:allow]
  end

  def test_an_unknown_event_is_refused
    assert_match(%r{\Aconfig/pando\.rb:1: unknown event "worker\.raedy".*worker\.ready},
                 error_of("on('worker.raedy') { }"))
  end

  def test_a_setter_with_self_is_unknown
    assert_equal "config/pando.rb:1: unknown setting workers=. Write workers without the equals sign.",
                 error_of("self.workers = 4")
  end

  def test_an_error_of_the_files_own_shows_class_message_and_line
    assert_equal "config/pando.rb:2: ZeroDivisionError: divided by 0", error_of("workers 1\nworkers 1 / 0")
    assert_match(%r{\Aconfig/pando\.rb:1: LoadError: cannot load such file -- no_such}, error_of("require 'no_such'"))
  end

  def test_rails_is_not_loaded_when_the_file_is_read
    %w[Rails.env.production? Rails.root ::Rails.env].each do |asked|
      assert_equal "config/pando.rb:2: Rails is not loaded: Pando reads this file before it loads the application. " \
                   "Write environment == \"production\" in place of Rails.env.production?, and Dir.pwd " \
                   "in place of Rails.root",
                   error_of("\nworkers 4 if #{asked}")
    end
    assert_match(/\Aconfig.pando.rb:1: Shop is not loaded: Pando reads this file before it/, error_of("Shop.x"))
    assert_match(/rb:1: present\? is a method of Rails, .* Use plain Ruby/, error_of("ENV['A'].present?"))
  end

  def test_a_number_has_no_methods_of_rails
    { "30.secs" => 30, "1.minute" => 1, "2.days" => 2 }.each do |written, number|
      assert_equal "config/pando.rb:1: #{written} is unknown: Pando reads this file before it loads the application, " \
                   "without Rails. Write seconds as a number, or #{number}.milliseconds, #{number}.seconds, " \
                   "#{number}.minutes or #{number}.hours", error_of("timeout #{written}")
    end
    assert_match(/5.megabytes is unknown: .* You can write .*5.kb, 5.mb/, error_of("max_body_bytes 5.megabytes"))
    assert_match(/NoMethodError: undefined method .*frobnicate/, error_of("'a'.frobnicate"))
  end

  def test_the_original_error_is_the_cause
    assert_kind_of ZeroDivisionError, assert_raises(Pando::ConfigError) { load_config("1 / 0") }.cause
  end

  def test_a_syntax_error_shows_the_line
    assert_match(%r{\Aconfig/pando\.rb:2: .*syntax error}, error_of("workers 1\nworkers )"))
  end

  def test_an_error_in_a_file_that_the_file_loads_shows_the_line_that_loads_it
    write("config/shared.rb", "raise 'shared is broken'")

    assert_equal "config/pando.rb:2: RuntimeError: shared is broken", error_of("\nrequire_relative 'shared'")
  end

  def test_an_error_deep_in_a_block_shows_the_line_of_the_setting
    assert_match(%r{\Aconfig/pando\.rb:2: workers must be}, error_of("[-1].each do |count|\n  workers count\nend"))
  end

  def test_exit_ends_the_process_as_the_file_wants
    assert_raises(SystemExit) { load_config("exit 3") }
  end

  def test_a_share_of_a_memory_whose_size_is_not_known
    Pando::Sys::Memory.stub(:limit, nil) do
      assert_equal("config/pando.rb:1: memory total: the size of the memory is not known here: write a number of bytes",
                   error_of("memory total: 80.percent; buffer_memory 64.mb"))
      assert_match(/\Adefault: buffer_memory: the size of the memory is not known here/, error_of(""))
      assert_equal(1024**3, load_config("memory total: 1.gb; buffer_memory 64.mb").memory_total)
    end
  end
end
