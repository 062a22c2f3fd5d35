# frozen_string_literal: true

require "test_helper"
require "pando/fork_safety/finding"
require "pando/doctor/subject/shared_state"

# Objects that keep the environment of a request until the next one overwrites it.
class SharedStateTest < Minitest::Test
  # Middleware that keeps what its block makes of the environment.
  class Middleware
    def initialize(app, &kept)
      @app = app
      @kept = kept
    end

    def call(env)
      @last = @kept.call(env)
      @app.call(env)
    end
  end

  # As Middleware, in a copy for each request.
  class Careful < Middleware
    alias serve call
    def call(env) = dup.serve(env)
  end

  # A module that keeps it.
  module Keeper
    LAST = {} # rubocop:disable Style/MutableConstant
    ALL = [] # rubocop:disable Style/MutableConstant
    class << self
      attr_accessor :request
    end
  end

  Request = Struct.new(:env)
  APP = ->(_env) { [200, {}, []] }

  def teardown
    [Keeper::LAST, Keeper::ALL].each(&:clear)
    Keeper.request = nil
  end

  def test_instance_variables_of_middleware
    inner = Careful.new(Middleware.new(APP, &:itself), &:itself)
    found = examine(outer = Middleware.new(inner) { |env| Request.new(env) })

    assert_equal ["SharedStateTest::Middleware's @last"], found.map(&:subject)
    assert_equal outer.method(:call).source_location.join(":"), found.first.location
    assert_equal :error, found.first.severity
  end

  def test_constants_and_variables_of_modules
    found = examine(lambda do |env|
      Keeper::LAST[:env] = env
      Keeper.request = Request.new(env)
      APP.call(env)
    end)

    assert_equal ["SharedStateTest::Keeper.@request", "SharedStateTest::Keeper::LAST"], found.map(&:subject).sort
  end

  def test_nothing_else
    assert_empty(examine(Careful.new(Middleware.new(APP) { |env| env["PATH_INFO"] }, &:itself)))
  end

  # It is the growth that is reported then, see LazyState.
  def test_what_keeps_all_of_them_is_not_overwritten
    assert_empty(examine(->(env) { (Keeper::ALL << env) && APP.call(env) }))
  end

  def test_what_belongs_to_a_thread
    assert_empty(examine(->(env) { (Keeper::LAST[Thread.current] = env) && APP.call(env) }))
  end

  private

  def examine(app)
    Pando::Doctor::Subject::SharedState.new(app).findings(["/"]) do |path|
      { "PATH_INFO" => path }.tap { |env| app.call(env) }
    end
  end
end
