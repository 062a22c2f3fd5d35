# frozen_string_literal: true

require "test_helper"
require "tmpdir"
require "pando/cluster/monitor"
require "pando/server"
require "pando/server/payload"
require "pando/server/renewal"

# Settings that only a restart changes are compared with those that the running reactor was started with.
class ServerStartSettingsTest < Minitest::Test
  # Stands for the part that starts the reactor.
  Setup = Struct.new(:started) { alias_method :started?, :started }

  def setup
    @folder = Dir.mktmpdir("pando-start")
    Dir.mkdir(File.join(@folder, "config"))
    File.write(File.join(@folder, "config.ru"), "run nil")
    @start = config("max_body_bytes 1.gb\npool :live, paths: [\"/a%b\"], workers: 1\n")
  end

  def teardown
    FileUtils.rm_rf(@folder)
  end

  def test_a_reload_compares_with_the_start
    assert_empty(kept(payload(@start), @start))
    later = config("max_body_bytes 5.gb\npidfile \"a.pid\"\npool :live, paths: [\"/b\"], workers: 1\n" \
                   "pool :new, paths: [\"/n\"], workers: 1\n")

    assert_equal(["pidfile", "max_body_bytes", "paths: of pool live", "pool new"], kept(payload(@start), later))
  end

  def test_a_reload_after_upgrades_compares_with_the_start
    later = config("max_body_bytes 5.gb\npidfile \"a.pid\"\npool :live, paths: [\"/a%b\"], workers: 1\n" \
                   "pool :new, paths: [\"/n\"], workers: 1\n")
    upgraded = upgrade(upgrade(payload(@start), later), later)

    assert_equal(["max_body_bytes", "pool new"], upgraded.kept, "the monitor has the pidfile of its configuration")
    assert_equal(["max_body_bytes", "pool new"], kept(upgraded, later))
    assert_empty(kept(upgraded, @start) - ["pidfile"], "it is what it was")
  end

  def test_a_reactor_that_was_started_after_the_upgrade_has_the_new_settings
    later = config("max_body_bytes 5.gb\npool :live, paths: [\"/a%b\"], workers: 1\n")
    upgraded = upgrade(payload(@start), later)
    upgraded.instance_variable_set(:@reactor, Setup.new(true))

    assert_empty(upgraded.kept)
    assert_equal(["max_body_bytes"], kept(upgraded, @start))
    assert_empty(upgrade(upgraded, later).kept)
  end

  def test_the_mode_is_that_of_the_start
    direct = config("reactor false\n")
    upgraded = upgrade(payload(direct), config("max_body_bytes 5.gb\n"))

    assert_equal(["reactor"], upgraded.kept)
    assert_equal(["reactor"], upgrade(upgraded, config("max_body_bytes 6.gb\n")).kept)
  end

  def test_the_state_of_an_older_pando_says_nothing
    upgraded = payload(@start)
    upgraded.from_state(Pando::Cluster::Upgrade::State.new)

    assert_empty(upgraded.kept)
  end

  private

  def config(text)
    File.write(File.join(@folder, "config/pando.rb"), text)
    Pando::Config.load(["-C", @folder], env: {})
  end

  def payload(config) = Pando::Server::Payload.new(Pando::Server.new(config))

  # @return [Payload] of the next image of the monitor
  def upgrade(former, config)
    document = Pando::Cluster::Upgrade::Document.new
    former.to_state(document)
    state = Pando::Cluster::Upgrade::State.new(document.class.parse(document.to_s))
    payload(config).tap { |one| one.from_state(state) }
  end

  # @return [Array<String>] what a reload names
  def kept(payload, config)
    renewal = Pando::Server::Renewal.allocate
    { first: payload.instance_variable_get(:@first), at_start: payload.settings_at_start, config: config }
      .each { |name, value| renewal.instance_variable_set(:"@#{name}", value) }
    renewal.kept.map(&:to_s)
  end
end
