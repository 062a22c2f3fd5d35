# frozen_string_literal: true

require "test_helper"
require "pando/cluster/monitor"
require "pando/errors"
require "tmpdir"
require_relative "support/clock"
require_relative "support/fakes"

# A reload whose configuration is not read to its end.
class ClusterReloadTest < Minitest::Test
  include ClusterSupport::Clock
  include ClusterSupport::Listening

  # Stands for Server::Renewal: one that is being read.
  Renewal = Struct.new(:ready, :given_up) do
    def kept = ["pool live"]
    def ready? = !!ready
    def due = nil
    def give_up = self.given_up = true
    def command = []
    def within = yield
  end
  Generation = Struct.new(:number, :state, :untried, :unproven, :served) do
    def served? = !!served
  end

  # Stands for Generations: the test says what becomes of the new release.
  class Generations
    attr_accessor :upcoming, :watching, :occupation
    attr_reader :ended

    def fallback_ready? = upcoming.nil?
    def reload(*) = @upcoming = Generation.new(1, :booting)
    def watching? = !!watching
    def remaining = (27.44 if watching?)

    def end_watch(reason)
      @ended = reason
      @watching = false
    end
  end

  def setup
    super
    @renewals = []
    payload = Object.new
    renewals = @renewals
    payload.define_singleton_method(:renew) { |_poller| Renewal.new.tap { |renewal| renewals << renewal } }
    @generations = Generations.new
    @adopted = []
    @reload = Pando::Cluster::Reload.new(@generations, payload, nil, ClusterSupport::Recorder.new,
                                         ->(renewal) { @adopted << renewal })
  end

  def turn
    @reload.attend
    @reload.reconcile
  end

  def reasons(name) = events(name).map { |event| event[:reason] }

  def test_another_one_takes_the_place_of_one_that_hangs
    ask
    elapse(3)
    @reload.request("HUP")
    turn

    assert_equal([true, nil], @renewals.map(&:given_up))
    assert_equal(["another reload was requested (HUP)"], reasons("reload.failed"))
    assert_match(/\Athe old release keeps serving; /, events("reload.failed").first[:advice])
    assert_equal(%w[test HUP], reasons("reload.started"))
  end

  def test_but_not_at_once
    ask
    @reload.request("HUP")
    turn

    assert_equal([nil], @renewals.map(&:given_up))
    assert_empty(events("reload.failed"))
  end

  def test_it_can_be_called_off
    ask
    @reload.request("HUP") # to follow it
    assert(@reload.cancel("called off"))
    turn

    assert_equal([[true], ["called off"]], [@renewals.map(&:given_up), reasons("reload.failed")])
    refute_predicate(@reload, :under_way?)
  end

  def test_there_may_be_nothing_to_call_off
    refute(@reload.cancel("called off"))
    ask
    @renewals.last.ready = true
    turn

    refute(@reload.cancel("called off"), "its generation is on its way")
    assert_predicate(@reload, :under_way?)
  end

  def test_while_it_is_watched_the_new_release_serves_and_the_old_settings_hold
    rolled_out
    2.times { turn }

    assert_equal([[1, "no request came", 27.4]],
                 events("reload.serving").map { |event| event.payload.values_at(:generation, :reason, :longest) })
    assert_empty(@adopted + events("reload.finished"))
    assert_equal(["pool live"], events("reload.incomplete").map { |event| event[:settings] })
    @generations.watching = false
    turn

    assert_equal(1, events("reload.incomplete").size)
    assert_equal([@renewals, 1], [@adopted, events("reload.finished").size])
  end

  def test_without_a_watch_it_is_over_at_once
    rolled_out(watching: false)

    assert_equal([0, 1, 1], %w[serving finished incomplete].map { |outcome| events("reload.#{outcome}").size })
  end

  # The mold may be lost between the turn in which the release begins to serve and the next one.
  def test_a_release_that_has_served_is_in_use_even_if_its_mold_is_lost_at_once
    ask
    @renewals.last.ready = true
    turn
    @generations.upcoming.state = :retired
    @generations.upcoming.served = true
    turn

    assert_equal([@renewals, 1, []], [@adopted, events("reload.finished").size, events("reload.failed")])
  end

  def test_one_that_has_not_served_has_failed_with_its_mold
    ask
    @renewals.last.ready = true
    turn
    @generations.upcoming.state = :retired
    turn

    assert_equal([[], ["its mold is lost"]], [@adopted, reasons("reload.failed")])
  end

  def test_the_next_one_does_not_wait_for_the_watch
    rolled_out
    @reload.request("HUP")
    turn

    assert_equal("another reload was requested", @generations.ended)
    assert_equal([1, 2], [events("reload.finished").size, events("reload.started").size])
  end

  def test_one_that_is_not_to_be_tried
    @reload.request("pando reload --now", now: true)
    turn
    @renewals.last.ready = true
    turn

    assert_equal("pando reload --now", @generations.upcoming.untried)
    @generations.upcoming.state = :current
    @generations.upcoming = nil
    turn
    ask
    @renewals.last.ready = true
    turn
    assert_nil(@generations.upcoming.untried, "the next one is")
  end

  def test_what_it_waits_for
    assert_nil(@reload.obstacle)
    ask
    @reload.request("HUP")
    assert_equal(["the reload before it: it reads the configuration", nil], @reload.obstacle)
    @renewals.last.ready = true
    @generations.occupation = ["generation 1 (reload) is booting", 60.0]
    turn
    assert_equal(["the reload before it: generation 1 (reload) is booting", 60.0], @reload.obstacle)
  end

  def test_it_waits_for_a_generation_that_is_on_its_way
    ask
    @generations.upcoming = Generation.new(7, :canary)
    @generations.occupation = ["generation 7 (refork) is canary", 30.0]
    @renewals.last.ready = true
    turn

    assert_equal(["generation 7 (refork) is canary", 30.0], @reload.obstacle)
  end

  private

  def rolled_out(watching: true)
    ask
    @renewals.last.ready = true
    turn
    @generations.upcoming.state = :current
    @generations.upcoming.unproven = "no request came"
    @generations.watching = watching
    turn
  end

  def ask
    @reload.request("test")
    turn
  end
end

class ClusterRestartFileTest < Minitest::Test
  include ClusterSupport::Clock

  Options = Struct.new(:restart_file)
  RestartFile = Pando::Cluster::RestartFile

  def setup
    @folder = Dir.mktmpdir("pando-restart")
    @path = File.join(@folder, "restart.txt")
  end

  def teardown
    FileUtils.rm_rf(@folder)
  end

  def test_touching_the_file_asks_for_a_reload_once
    file = RestartFile.new(Options.new(@path))

    assert_equal [[], [@path], []], [look(file), touch { look(file) }, look(file)]
    assert_equal([@path], touch { look(file) })
  end

  def test_a_file_from_before_the_start_asks_for_nothing
    assert_empty(touch { look(RestartFile.new(Options.new(@path))) })
  end

  def test_another_path_is_no_touch
    options = Options.new(@path)
    file = RestartFile.new(options)
    other = File.join(@folder, "other.txt").tap { |path| File.write(path, "") }
    options.restart_file = other
    assert_empty look(file)
    touch { options.restart_file = nil }
    assert_empty look(file)
    options.restart_file = @path

    assert_empty look(file)
    assert_equal([@path], touch { look(file) })
  end

  def test_it_looks_once_a_second
    file = RestartFile.new(Options.new(@path))

    assert_in_delta now + 1.0, file.due
    touch { assert_empty collect(file) }
    elapse(1.0)

    assert_equal [@path], collect(file)
  end

  # The former image looks once a second, and not while the upgrade holds.
  def test_a_touch_just_before_an_upgrade_is_seen_after_it
    options = Options.new(@path)
    touch { nil }
    file = RestartFile.new(options)
    later = touch { upgraded(file, options) }

    assert_equal([[@path], []], [look(later), look(later)])
    assert_empty(look(upgraded(later, options)))
  end

  def test_a_file_that_is_made_just_before_an_upgrade_is_seen_after_it
    file = RestartFile.new(Options.new(@path))

    assert_equal([@path], look(touch { upgraded(file, Options.new(@path)) }))
  end

  def test_an_upgrade_that_brings_another_path_is_no_touch
    other = File.join(@folder, "other.txt").tap { |path| File.write(path, "") }
    file = touch { RestartFile.new(Options.new(@path)) }

    assert_empty(look(upgraded(file, Options.new(other))))
  end

  def test_the_state_of_an_older_pando_has_no_touch
    file = touch { RestartFile.new(Options.new(@path)) }
    file.from_state(Pando::Cluster::Upgrade::State.new)
    assert_empty(look(file))

    assert_equal([@path], touch { look(file) })
  end

  def test_without_a_path_there_is_nothing_to_look_at
    file = RestartFile.new(Options.new(nil))

    assert_nil file.due
    assert_empty look(file)
  end

  private

  def look(file)
    elapse(1.0)
    collect(file)
  end

  def collect(file)
    found = []
    file.proceed { |path| found << path }
    found
  end

  # @return [RestartFile] of the next image of the monitor
  def upgraded(file, options)
    document = Pando::Cluster::Upgrade::Document.new
    file.to_state(document)
    later = RestartFile.new(options)
    later.from_state(Pando::Cluster::Upgrade::State.new(document.class.parse(document.to_s)))
    later
  end

  def touch
    @touched = (@touched || 1_000_000) + 1
    File.write(@path, "")
    File.utime(@touched, @touched, @path)
    yield
  end
end
