# frozen_string_literal: true

require_relative "config_test_case"

class FlagsTest < ConfigTestCase
  Flags = Pando::Config::Flags
  CHECK = Flags::Switch.new(name: :check, flags: %w[--check])

  def test_a_value_is_written_in_four_ways
    [%w[-w 4], %w[-w4], %w[--workers 4], %w[--workers=4]].each do |argv|
      assert_equal [[:workers, "4"]], parse(*argv)
    end
  end

  def test_each_flag_sets_its_setting
    flags = { "-l" => :listen, "--listen" => :listen, "-w" => :workers, "--refork" => :refork, "-e" => :environment,
              "-C" => :directory, "-c" => :config_file, "-t" => :timeout, "--log-format" => :log_format }

    flags.each { |flag, name| assert_equal [[name, "x"]], parse(flag, "x") }
  end

  def test_the_rackup_file_stands_anywhere
    assert_equal [[:rackup, "app.ru"], [:workers, "2"]], parse("app.ru", "-w", "2")
    assert_equal [[:workers, "2"], [:rackup, "-app.ru"]], parse("-w", "2", "--", "-app.ru")
  end

  def test_switches
    flags = Flags.parse(%w[--check -w 2], switches: [CHECK])

    assert_equal [true, nil, %w[-w 2]], [flags[:check], flags[:help], flags.argv]
  end

  # A rackup file whose name begins with a dash stands behind --, where no flag can follow.
  def test_the_arguments_for_another_process
    flags = Flags.parse(%w[-C app -w 2 -l 80 -- -app.ru])

    assert_equal %w[-w 2 -l 80 -- -app.ru], flags.argv
    assert_equal %w[-C app -w 2 --refork off -- -app.ru], flags.argv(except: [:listen], more: %w[--refork off])
  end

  def test_a_switch_reads_its_argument_as_a_setting_does
    wait = Flags::Switch.new(name: :wait, flags: %w[-W --wait], argument: "[SECONDS]",
                             type: Pando::Config::Types::Seconds.new)
    times = Flags::Switch.new(name: :times, flags: %w[--times], argument: "N", repeatable: true,
                              type: Pando::Config::Types::Whole.new(1..9))
    switches = [wait, times]
    values = ->(*argv) { Flags.parse(argv, switches: switches).then { |flags| [flags[:wait], flags[:times]] } }

    assert_equal [[120.0, [1, 9]], [true, nil]], [values["--wait", "2m", "--times", "1", "--times=9"], values["-W"]]
    assert_equal "-W: must be a number of seconds, more than 0 and at most a year, but is \"0\".",
                 usage_error("-W0", switches: switches)
    assert_equal "--times: must be a whole number from 1 to 9, but is \"10\".",
                 usage_error("--times", "10", switches: switches)
  end

  def test_switches_are_unknown_where_they_are_not_declared
    assert_equal "unknown flag --check. See pando --help.", usage_error("--check")
  end

  def test_wrong_command_lines
    assert_equal "unknown flag --worker. Did you mean --workers? See pando --help.", usage_error("--worker", "4")
    assert_equal "unknown flag --wrokers. Did you mean --workers? See pando --help.", usage_error("--wrokers=4")
    assert_equal "unknown flag -p. Give -l PORT.", usage_error("-p", "3000")
    assert_equal "unknown flag -p. Give -l PORT.", usage_error("-p3000")
    [["-b", "ssl://[::]:80"], ["-bssl://[::]:80"]].each do |argv|
      assert_equal "unknown flag -b. Pando speaks no TLS: let a proxy do that, and listen behind it.",
                   usage_error(*argv)
    end
    assert_equal "-w needs a value: -w N", usage_error("-w")
    assert_equal "-w needs a value: -w N", usage_error("-w", "-c", "x")
    assert_equal "give only one RACKUP: a.ru or b.ru?", usage_error("a.ru", "b.ru")
    assert_equal "--check takes no value, but was given \"1\"", usage_error("--check=1", switches: [CHECK])
  end

  # For once, with a file that says more.
  def test_a_flag_may_make_idle_what_the_file_says_beside_it
    assert_equal :manual, load_config("refork :auto, prefer: :memory", argv: %w[--refork manual]).refork
    assert_equal :auto, load_config("refork :manual, prefer: :memory", argv: %w[--refork auto]).refork
  end

  def test_wrong_values_name_the_flag_as_it_was_typed
    assert_equal '--workers: workers must be a whole number from 0 to 1024, or auto, but is "x".',
                 error_of(argv: %w[--workers=x])
    assert_equal '--workers: workers must be a whole number from 0 to 1024, or auto, but is "".',
                 error_of(argv: %w[--workers=])
    assert_equal '-t: timeout must be a number of seconds, more than 0 and at most a year, or false, but is "soon".',
                 error_of(argv: %w[-t soon])
    assert_equal '--refork: refork must be auto, manual, false or a list of numbers of requests, but is "manaul". ' \
                 "Did you mean manual?", error_of(argv: %w[--refork manaul])
    assert_equal "-l: listen must be HOST:PORT, PORT, [v6]:PORT, unix:PATH, unix:@ABSTRACT or systemd, " \
                 'but is "localhost": the port is missing.', error_of(argv: %w[-l localhost])
    assert_equal '--prefault: refork prefault: must be on, off or BYTES,MILLISECONDS, but is "5".',
                 error_of(argv: %w[--prefault 5])
    assert_equal '--log-format: log_format must be text or json, but is "jsn". Did you mean json?',
                 error_of(argv: %w[--log-format jsn])
    assert_equal '-e: environment must be a name such as production, but is "a b".', error_of(argv: ["-e", "a b"])
    assert_equal "command line: rackup must be the path of a rackup file, but is \"\".", error_of(argv: [""])
  end

  def test_right_values_arrive
    config = load_config(argv: %w[-l [::1]:80 -w auto --refork 50,75,off -e test -t off --log-format json app.ru])

    assert_equal [["[::1]:80"], { after: [50, 75, false] }, "test", nil, :json, "#{@dir}/app.ru"],
                 [config.listen.map(&:to_s), config.refork, config.environment, config.timeout, config.log_format,
                  config.rackup]
    assert_equal ["command line", "--log-format"], [config.source(:rackup), config.source(:log_format)]
  end

  def test_no_two_settings_share_a_flag_and_no_hint_hides_one
    flags = Pando::Config::Settings.all.flat_map(&:flags)

    assert_equal flags.uniq, flags
    assert_empty flags & Pando::Compat::Names::FLAGS.keys
  end

  private

  def parse(*argv)
    Flags.parse(argv).given.map { |one| [one.setting.name, one.text] }
  end

  def usage_error(*argv, **rest)
    assert_raises(Pando::UsageError) { Flags.parse(argv, **rest) }.message
  end
end
