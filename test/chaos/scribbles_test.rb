# frozen_string_literal: true

require "test_helper"
require "support/load"
require "support/scribbling_app"
require "support/servers"

# Promise: what a worker writes where it must not costs what is on its lane at that moment; everybody else is answered,
# and none waits for more than two seconds.
class ChaosScribblesTest < Minitest::Test
  include Support::Servers

  LIMIT = 2.0 # seconds
  WORKERS = 3
  SEED = Integer(ENV.fetch("CHAOS_SEED", Random.new_seed % 1_000_000))
  # Random ones for each kind, in each mode.
  TIMES = Integer(ENV.fetch("CHAOS_SCRIBBLES", 12))
  # Of a lane: the offers, the sleepers, the bytes written, the starving side; and what a row begins with.
  COUNTERS = {
    "pando-lane" => [*(0..248).step(8), 256, 260, 264, 320, 384, 448], "pando-scoreboard" => (0..120).step(8)
  }.freeze
  VALUES = ["ff" * 8, "00" * 8, "0100000000000000", "0100000001000000"].freeze

  def setup
    puts "CHAOS_SEED=#{SEED}"
    @random = Random.new(SEED)
    @scribbles = 0
    @stolen = Support::FairClock.stolen
  end

  def teardown
    @load&.stop
    super
  end

  def start(config)
    @server = serve(app: Support::ScribblingApp::TEXT, config: "workers #{WORKERS}\nrefork :manual\n#{config}")
    @load = Support::Load.start(@server.method(:connect), clients: 4)
    @load.wait_for_more(100)
  end

  # It may be killed for that before it has answered.
  def scribble(path)
    @scribbles += 1
    @server.get(path)
  rescue EOFError, SystemCallError
    nil
  ensure
    @load.wait_for_more(40)
  end

  # What its worker had taken, or was given before the damage was seen, is lost with it.
  def assert_others_served
    @load.stop
    puts "#{@scribbles} scribbles, #{@load.outcomes.size} requests: #{@load.failures.size} failed, " \
         "the slowest took #{@load.slowest.round(3)} s"

    assert_operator @load.failures.size, :<=, @scribbles, @load.failures.first(5).inspect
    assert_operator @load.slowest, :<, LIMIT + Support::FairClock.stolen - @stolen
    @server.wait_past("server.ready")
    assert_equal 200, @server.get("/").status
  end

  def test_each_counter_alone
    start("")
    counters = COUNTERS.flat_map { |name, offsets| offsets.map { |offset| "#{name}&#{offset}" } }
    counters.cycle.first([TIMES, counters.size].max).each do |counter|
      scribble("/scribble?#{counter}&#{VALUES.sample(random: @random)}")
    end

    assert_others_served
  end

  def test_words_anywhere
    start("")
    TIMES.times { scribble("/scribbles?#{@random.rand(1 << 30)}") }

    assert_others_served
  end

  def test_pages
    start("")
    TIMES.times { scribble("/page?#{@random.rand(1 << 30)}") }

    assert_others_served
  end

  def test_everything
    start("")
    TIMES.times { scribble("/flood?#{@random.rand(256)}") }

    assert_others_served
  end

  def test_without_a_reactor
    start("reactor false")
    COUNTERS.fetch("pando-scoreboard").each { |offset| scribble("/scribble?pando-scoreboard&#{offset}&#{"ff" * 8}") }
    TIMES.times { scribble("/flood?#{@random.rand(256)}") }

    assert_others_served
  end
end
