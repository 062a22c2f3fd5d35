# frozen_string_literal: true

require "test_helper"
require "support/server_process"

# What the server says of the libraries that an app has loaded, and what it does when one cannot be made ready. The app
# has stand-ins for them: a library counts as loaded when its constant is there.
class LibraryCheckTest < Minitest::Test
  APP = <<~RUBY
    module Bunny
      class Session
        def open? = true
      end
    end
    module MiniMime; class Db; end; end
    module Bootsnap; end

    module Appsignal
      VERSION = "4.0.0"
      class Extension; end
      def self.forked = raise("no agent")
    end

    module Sequel
      Database = Struct.new(:adapter_scheme, :busy, :disconnects) do
        def disconnect = busy ? raise("busy") : self.disconnects += 1
      end
      DATABASES = [Database.new(:postgres, false, 0)]
    end

    run(lambda do |env|
      database = Sequel::DATABASES.first
      database.busy = true if env["PATH_INFO"] == "/use"
      [200, {}, [database.disconnects.to_s]]
    end)
  RUBY

  # It has opened a connection of a library whose verdict is "refused".
  CONNECTED = "#{APP}\nSESSION = Bunny::Session.new\n".freeze

  def teardown
    @server&.kill
  end

  def test_what_is_left_to_the_user_is_told_once_and_what_he_has_done_is_not
    @server = start("prepared_library 'listen'; prepared_library 'bunny'")

    checked = @server.events("libraries.checked")

    assert_equal 1, checked.size
    assert_equal 1, checked.first["fine"]
    assert_equal "sequel, bunny, appsignal 4.0.0", checked.first["handled"]
    assert_equal "", checked.first["refused"]
    assert_match(/\bmini_mime\b/, checked.first["unknown"]) # it does not tell its version
    assert_empty @server.events("library.reported")
  end

  def test_the_hook_that_is_missing_is_named
    @server = start(app: CONNECTED)
    reported = @server.events("library.reported")

    assert_equal(["bunny"], reported.map { |event| event["library"] })
    assert_match(/before_fork \{ BUNNY.close \}/, reported.first["advice"])
  end

  def test_a_worker_that_uses_a_refused_library_is_not_promoted
    @server = start("workers 1", app: CONNECTED)
    discarded = @server.wait_for("generation.discarded") { @server.signal("USR2") }

    assert_match(/bunny: .*before_fork \{ BUNNY.close \}/, discarded["reason"])
    assert_equal 200, @server.get("/").status
  end

  def test_a_worker_is_promoted_once_the_hooks_take_care_of_the_library
    @server = start("workers 1\nprepared_library 'bunny'", app: CONNECTED)

    assert_equal 1, @server.refork["generation"]
  end

  def test_pandos_part_is_done_before_each_fork
    @server = start("workers 1")

    assert_equal "1", @server.get("/").body
    @server.refork
    assert_equal "3", @server.get("/").body # and once for the mold between
  end

  def test_what_fails_after_a_fork_is_told_and_lived_with
    @server = start
    failed = @server.events("library.failed")

    assert_equal @server.workers.map(&:pid).sort, failed.map { |event| event["pid"] }.sort
    assert_equal(%w[appsignal], failed.map { |event| event["library"] }.uniq)
    assert_equal("no agent (RuntimeError)", failed.first["reason"])
  end

  def test_a_worker_that_cannot_be_made_ready_is_not_promoted
    @server = start("workers 1")
    @server.get("/use")
    unsafe = @server.wait_for("worker.unsafe") { @server.signal("USR2") }
    discarded = @server.wait_past("generation.discarded")

    assert_equal "sequel: busy", unsafe["reason"]
    assert_includes discarded["reason"], "sequel: busy"
    assert_equal 200, @server.get("/").status
    assert_equal "refork.refused", @server.wait_for("refork.refused") { @server.signal("USR2") }["event"]
  end

  private

  def start(config = "", app: APP)
    Support::ServerProcess.start(app: app, config: "workers 2\n#{config}", arguments: ["--refork", "manual"])
  end
end
