# frozen_string_literal: true

require "test_helper"
require "minitest/mock"
require "stringio"
require "tmpdir"
require "pando/cli"
require "pando/cli/measure"
require "pando/measure"

# What `pando measure` makes of its command line; the measurement itself is left out.
class MeasureCommandTest < Minitest::Test
  Measure = Pando::Measure

  def setup
    @folder = Dir.mktmpdir
    File.write(File.join(@folder, "config.ru"), "run nil")
  end

  def teardown
    FileUtils.rm_rf(@folder)
  end

  def test_what_holds_if_nothing_is_said
    config, plan, selection = measured

    assert_equal(["production", nil], [config.environment, selection])
    assert_equal([4, 1000, 4, {}, :puma], plan.to_a)
    assert_match(/\Apando measure: #{Regexp.escape(@folder)} in the environment production, with its real/, @err)
  end

  def test_what_is_said
    write("routes", "/a\nPOST /b\n")
    config, plan, selection = measured("-w", "2", "--requests", "50", "--clients", "9", "--against", "none",
                                       "--header", "Cookie: a=b; c=d", "--header", "Host:x", "-e", "staging",
                                       "--routes", "#{@folder}/routes", "--writes")

    assert_equal([2, 50, 9, { "Cookie" => "a=b; c=d", "Host" => "x" }, :none], plan.to_a)
    assert_equal(["staging", ["GET /a", "POST /b"]], [config.environment, selection.requests.map(&:to_s)])
  end

  def test_a_variable_names_the_environment
    assert_equal("test", measured(env: { "RAILS_ENV" => "test" }).first.environment)
    assert_equal("staging", measured(env: { "RACK_ENV" => "staging" }).first.environment)
  end

  def test_the_progress_is_told_but_not_all_of_it_to_a_file
    measured { |tell| (1..100).each { |done| tell.call("loading", done, 100) } }

    assert_equal(10, @err.scan(/^  loading: \d+ of 100 requests per server$/).size)
  end

  def test_wrong_usage
    write("empty", "nothing\n")
    write("writes", "POST /a\n")
    { %w[-w auto] => /-w: must be a whole number from 1 to 64/,
      %w[--requests many] => /--requests: must be a whole number from 1/,
      ["--clients", "1000"] => /--clients: must be a whole number from 1 to 256/,
      %w[--against unicorn] => /--against: must be puma or none/, ["--header", "Cookie"] => /--header: must be like/,
      ["--header", "a b: c"] => /--header/, ["--header", "a: b\r\nc: d"] => /--header/,
      %w[--log nowhere] => /--log: there is no file nowhere$/, %w[--routes /] => %r{--routes: / is a folder, not a fi},
      ["--log", "#{@folder}/empty"] => /empty contains no request that can be sent$/,
      ["--routes", "#{@folder}/writes"] => /writes contains no request.*without --writes/,
      %w[--log a --routes b] => /either --routes or --log/, %w[--format xml] => /--format: must be text, json or html/,
      %w[--output /nowhere/x] => /--output: the folder .nowhere does not exist/,
      ["none.ru"] => /none.ru/ }.each do |arguments, message|
      assert_equal(2, run_command(*arguments), arguments.inspect)
      assert_match(message, @err)
    end
  end

  def test_puma_is_wanted_and_is_not_there
    Measure::PumaSubject.stub(:program, nil) { assert_equal(2, run_command("--against", "puma")) }

    assert_match(/--against puma: puma is not in the bundle/, @err)
  end

  def test_nothing_could_be_measured
    status = run_command { raise Measure::NotMeasured, "Puma: it ended" }

    assert_equal([2, ""], [status, @out])
    assert_match(/^pando: nothing was measured: Puma: it ended$/, @err)
  end

  private

  def write(name, text) = File.write(File.join(@folder, name), text)

  # @return [Array] what was to be measured
  def measured(*arguments, **options, &block)
    seen = nil
    status = run_command(*arguments, **options) { |*given, &tell| (seen = given) && block&.call(tell) }
    assert_equal(0, status, @err)
    seen
  end

  def run_command(*arguments, env: {}, &block)
    out = StringIO.new
    err = StringIO.new
    block ||= proc {}
    status = Measure.stub(:call, block) do
      Measure::Report.stub(:write, "the report\n") do
        Pando::CLI.run(["measure", "-C", @folder, *arguments], out: out, err: err, env: env)
      end
    end
    @out = out.string
    @err = err.string
    status
  end
end
