# frozen_string_literal: true

require "test_helper"
require "fileutils"
require "json"
require "tmpdir"
require "pando/telemetry/first_request"

# With a profiler of the test's own; the real ones: test/integration/first_request_profile_test.rb.
class FirstRequestTest < Minitest::Test
  Worker = Struct.new(:slot, :generation, :pid)

  # Writes what was called.
  class Profiler
    NAME = "fake"
    class << self
      attr_accessor :fails
    end

    def start = note(:start)
    def stop = note(:stop)

    def write(path)
      note(:write)
      File.write(path, @notes.join(" "))
    end

    private

    def note(step)
      raise "no #{step}" if self.class.fails == step

      (@notes ||= []) << step
    end
  end

  def setup
    @folder = File.join(@parent = Dir.mktmpdir, "a/b")
    @told = []
    @subscription = Pando::Events.subscribe { |event| @told << event }
    Profiler.fails = nil
  end

  def teardown
    Pando::Events.unsubscribe(@subscription)
    FileUtils.rm_rf(@parent)
  end

  def first_request = Pando::Telemetry::FirstRequest.new(@folder, Profiler)

  def files = Dir.children(@folder)

  # As the server does it.
  def call(app, env = {})
    env = { "REQUEST_METHOD" => "GET", "PATH_INFO" => "/first" }.merge(env)
    app.call(env)
  ensure
    env["rack.response_finished"]&.each { |callback| callback.call(env, 200, {}, nil) }
  end

  def test_the_first_request_of_a_generation_is_profiled_and_no_other
    profile = first_request
    plain = ->(_env) { [200, {}, ["hi"]] }
    apps = [[0, 1], [1, 1], [0, 2]].map { |slot, generation| profile.wrap(plain, Worker.new(slot, generation, 42)) }
    given_back = []
    apps.each { |app| app.afterwards { |given| given_back << given } }

    assert_equal([[200, {}, ["hi"]]], apps.map { |app| call(app) }.uniq)
    assert_equal [plain] * 3, given_back
    assert_equal %w[1 2], files.map { |name| name[/\Afirst-request-[\d-]+-generation-(\d)\.fake\.json\z/, 1] }.sort
    assert_equal(["start stop write"], files.map { |name| File.read(File.join(@folder, name)) }.uniq)
    assert_equal(%w[profile.written] * 2, @told.map(&:name))
    assert_equal([0, 1, 42, "GET /first"], @told.first.payload.values_at(:slot, :generation, :pid, :request))
    assert_path_exists @told.first[:path]
  end

  def test_an_application_that_raises_is_profiled_and_raises
    app = first_request.wrap(->(_env) { raise KeyError, "no" }, Worker.new(0, 1, 42))

    assert_raises(KeyError) { call(app) }
    assert_equal(["start stop write"], files.map { |name| File.read(File.join(@folder, name)) })
  end

  def test_a_profiler_that_fails_leaves_the_request_alone
    %i[start stop write].each_with_index do |step, generation|
      Profiler.fails = step
      app = first_request.wrap(->(_env) { :answer }, Worker.new(0, generation, 42))
      given_back = nil
      app.afterwards { |given| given_back = given }

      assert_equal :answer, call(app)
      assert given_back
      assert_equal ["profile.failed", "no #{step} (RuntimeError)"], [@told.last.name, @told.last[:reason]]
      assert_empty files
    end
  end

  def test_a_folder_that_has_gone_is_told_of
    app = first_request.wrap(->(_env) { :answer }, Worker.new(0, 1, 42))
    FileUtils.rm_rf(@folder)

    assert_equal :answer, call(app)
    assert_match(/No such file.*ENOENT/, @told.last[:reason])
  end

  def test_a_process_that_the_application_forks_writes_nothing
    app = first_request.wrap(->(_env) { fork || :child }, Worker.new(0, 1, 42))
    pid = call(app)
    exit!(@told.empty? ? 0 : 1) if pid == :child

    assert_predicate Process.wait2(pid).last, :success?
    assert_equal 1, @told.size
  end

  def test_without_a_profiler_the_boot_ends_with_the_names_of_the_gems
    %w[vernier stackprof].each { |gem| skip "#{gem} is installed" if Gem.loaded_specs.key?(gem) }
    error = assert_raises(Pando::BootError) { Pando::Telemetry::FirstRequest.new(@folder) }

    assert_match(/needs a profiler: add `gem "vernier"` .* or `gem "stackprof"` to the Gemfile/, error.message)
  end

  def test_a_folder_that_cannot_be_made_ends_the_boot
    FileUtils.touch(File.join(@parent, "a"))
    error = assert_raises(Pando::BootError) { first_request }

    assert_match(/cannot write its profiles: .*#{Regexp.escape(@parent)}/, error.message)
  end
end
