# frozen_string_literal: true

require_relative "../bench_helper"
require "json"
require "tmpdir"
require "support/lab/apps"

# Which database a run of the public apps gets. The apps themselves need their gems.
class LabFilledAppTest < Minitest::Test
  Apps = Bench::Lab::Apps
  LOCK = <<~TEXT
    GEM
      specs:
        rails (8.0.5)
          actioncable (= 8.0.5)
        solidus_core (4.8.0)
        alchemy_cms (8.4.1)
        alchemy-devise (8.4.2)
    BUNDLED WITH
      %s
  TEXT
  NEXT_VERSIONS = { Apps::Solidus => ["4.8.0", "4.9.0"], Apps::Alchemy => ["8.4.2", "8.4.3"] }.freeze

  # What a bundle says of itself.
  Gems = Struct.new(:environment)

  def setup
    @folder = Dir.mktmpdir
    @cache = ENV.fetch("XDG_CACHE_HOME", nil)
    ENV["XDG_CACHE_HOME"] = @folder
  end

  def teardown
    ENV["XDG_CACHE_HOME"] = @cache
    FileUtils.rm_rf(@folder)
  end

  def test_each_run_has_a_copy_of_the_database_made_once
    app = app_with(Apps::Solidus, format(LOCK, "2.5.22"))
    write(app, "production.sqlite3", "rows")
    app.prepare(nil) # would fail for want of a bundle if it filled one

    Dir.mktmpdir do |folder|
      environment = app.environment(folder)

      assert_equal "rows", File.read(File.join(folder, "production.sqlite3"))
      assert_equal [folder, File.join(app.home, "data/files")], environment.values_at("LAB_FOLDER", "LAB_FILES")
      assert_path_exists environment.fetch("LAB_APP")
    end
  end

  def test_another_version_of_the_gems_has_a_database_of_its_own_another_bundler_has_not
    NEXT_VERSIONS.each do |kind, versions|
      homes = [format(LOCK, "2.5.22"), format(LOCK, "4.0.10"), format(LOCK, "4.0.10").sub(*versions)]
              .map { |lock| File.basename(app_with(kind, lock).home) }

      assert_equal homes[0], homes[1]
      refute_equal homes[1], homes[2]
    end
  end

  def test_each_app_has_a_folder_of_its_own
    homes = NEXT_VERSIONS.keys.map { |kind| File.basename(app_with(kind, format(LOCK, "2.5.22")).home) }

    assert_equal(%w[solidus alchemy], homes.map { |home| home[/\A[a-z]+/] })
  end

  def test_requests_have_the_sessions_made_with_the_database
    sessions = [{ "cookie" => "a=1", "token" => "t" }, { "cookie" => "m=1", "token" => "u" }]
    app = app_with(Apps::Alchemy, format(LOCK, "2.5.22"))
    write(app, "sessions.json", JSON.generate(sessions))
    mix = Bench::Alchemy::Traffic
    targets = app.traffic(1).targets

    assert_equal (mix.targets(sessions) + mix.writes(sessions)).map { |target| target[1] }, targets.map(&:path)
    assert_includes targets.map(&:headers), { "Cookie" => "m=1" }
  end

  private

  def app_with(kind, lock)
    gemfile = File.join(Dir.mktmpdir(nil, @folder), "Gemfile")
    File.write("#{gemfile}.lock", lock)
    kind.new(Gems.new({ "BUNDLE_GEMFILE" => gemfile }))
  end

  def write(app, name, text)
    data = File.join(app.home, "data")
    FileUtils.mkdir_p(data)
    File.write(File.join(data, name), text)
  end
end
