# frozen_string_literal: true

require_relative "../bench_helper"
require "tmpdir"
require "support/lab/apps"

# What is asked of the shop, and which database a run gets. The shop itself needs its gems.
class LabSolidusAppTest < Minitest::Test
  MIX = Bench::Solidus::Traffic
  ALL = (MIX.targets + MIX.writes).freeze
  LOCK = <<~TEXT
    GEM
      specs:
        rails (8.0.5)
          actioncable (= 8.0.5)
        solidus_core (4.8.0)
    BUNDLED WITH
      %s
  TEXT

  # What a bundle says of itself.
  Gems = Struct.new(:environment)

  def test_the_traffic_asks_for_100_to_300_routes_each_once
    assert_includes 100..300, ALL.size
    assert_equal ALL.uniq, ALL
  end

  def test_a_path_names_one_row_at_most_for_only_one_gets_a_number
    assert(ALL.all? { |_verb, path| path.scan("%d").size <= 1 })
    assert(ALL.none? { |_verb, path| path.sub("%d", "7").match?(/[^\x21-\x7e]|%(?!\h\h)/) })
  end

  def test_all_but_the_storefront_is_asked_for_with_the_key
    closed = ALL.select { |_verb, path| path.start_with?("/admin/", "/api/") }

    assert_operator closed.size, :>, ALL.size / 2
    closed.map(&:last).each { |path| assert_match(/[?&]token=lab\z/, path) }
    assert(MIX.writes.all? { |verb, path| verb == "PATCH" && path.start_with?("/api/") })
  end

  def test_each_run_has_a_copy_of_the_database_made_once
    shop = shop_with(format(LOCK, "2.5.22"))
    data = File.join(shop.home, "data")
    FileUtils.mkdir_p(data)
    File.write(File.join(data, "production.sqlite3"), "rows")
    shop.prepare(nil) # would fail for want of a bundle if it filled one

    Dir.mktmpdir do |folder|
      environment = shop.environment(folder)

      assert_equal "rows", File.read(File.join(folder, "production.sqlite3"))
      assert_equal [folder, File.join(data, "files")], environment.values_at("LAB_FOLDER", "LAB_FILES")
      assert_path_exists environment.fetch("LAB_APP")
    end
  end

  def test_another_version_of_the_gems_has_a_database_of_its_own_another_bundler_has_not
    homes = [format(LOCK, "2.5.22"), format(LOCK, "4.0.10"), format(LOCK, "4.0.10").sub("4.8.0", "4.9.0")]
            .map { |lock| File.basename(shop_with(lock).home) }

    assert_equal homes[0], homes[1]
    refute_equal homes[1], homes[2]
  end

  def setup
    @folder = Dir.mktmpdir
    @cache = ENV.fetch("XDG_CACHE_HOME", nil)
    ENV["XDG_CACHE_HOME"] = @folder
  end

  def teardown
    ENV["XDG_CACHE_HOME"] = @cache
    FileUtils.rm_rf(@folder)
  end

  private

  def shop_with(lock)
    gemfile = File.join(Dir.mktmpdir(nil, @folder), "Gemfile")
    File.write("#{gemfile}.lock", lock)
    Bench::Lab::Apps::Solidus.new(Gems.new({ "BUNDLE_GEMFILE" => gemfile }))
  end
end
