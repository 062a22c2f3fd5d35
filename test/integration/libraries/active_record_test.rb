# frozen_string_literal: true

require_relative "library_app"
require "support/postgresql"

# ActiveRecord with PostgreSQL and SQLite.
class ActiveRecordTest < Minitest::Test
  include LibraryApp

  LIBRARIES = %w[activerecord pg sqlite3].freeze

  def test_each_worker_has_a_backend_of_its_own
    survive_reforks do |generation|
      assert_equal connections_of(generation), backends(generation), "PostgreSQL's backends"
    end
    assert_empty verdicts["refused"]
    assert_match(/\Aactiverecord|sqlite3/, verdicts["handled"]) if RUBY_VERSION < "3.2" # its sqlite3 is too old to cope
  end

  private

  def app = "active_record"
  def obstacle = Support::PostgreSQL.obstacle
  def prepare = @postgresql = Support::PostgreSQL.new(File.join(@folder, "pg")).start
  def clean_up = @postgresql&.stop
  def environment = { "PGHOST" => @postgresql.folder, "APP_DATABASE" => File.join(@folder, "notes.sqlite3") }

  def ask(path, text)
    super.tap { |answer| assert_equal text, answer["note"] }
  end

  # Each worker has connected before it is asked: it comes from one that was.
  def assert_ready(generation)
    assert_equal WORKERS, worker_pids(generation).size
    wait_until(message: -> { "#{WORKERS} backends, not #{all_backends}" }) do
      all_backends.size == WORKERS && all_backends.none? { |pid| @owners.key?(pid) }
    end
  end

  # The old generation's end with its processes; the mold has none of its own.
  def backends(generation)
    expected = connections_of(generation)
    wait_until(message: -> { "backends #{expected}, not #{all_backends}" }) { all_backends == expected }
    all_backends
  end

  def all_backends
    @postgresql.rows("SELECT pid FROM pg_stat_activity WHERE application_name = 'pando-active-record'").flatten.sort
  end
end
