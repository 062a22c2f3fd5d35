# frozen_string_literal: true

require "test_helper"
require "open3"
require "pando/server/allocator"
require "support/servers"

# Promise: the application has jemalloc where there is one, and what it starts has its own environment.
class AllocatorTest < Minitest::Test
  include Support::Servers

  SETTINGS = "workers 1\nrefork :manual\ncontrol \"control.sock\"\n"
  APP = <<~'RUBY'
    # What this process has, and what one that it starts gets.
    LOOK = lambda do
      used = File.read("/proc/self/maps").include?("libjemalloc") ? "jemalloc" : "glibc"
      [used, ENV.values_at("LD_PRELOAD", "MALLOC_CONF").inspect, ENV.keys.grep(/\APANDO_/).inspect,
       `sh -c 'echo "$LD_PRELOAD/$MALLOC_CONF"; grep -c jemalloc /proc/self/maps'`.split.inspect].join(" ")
    end
    AT_LOAD = LOOK.call
    run ->(_env) { [200, {}, [AT_LOAD, "\n", LOOK.call]] }
  RUBY
  # How many arenas jemalloc was told to have, and the variable that the application finds.
  ARENAS = <<~RUBY
    require "fiddle"
    POINTERS = [Fiddle::TYPE_VOIDP] * 4
    MALLCTL = Fiddle::Function.new(Fiddle::Handle::DEFAULT["mallctl"], [*POINTERS, Fiddle::TYPE_SIZE_T], Fiddle::TYPE_INT)
    COUNT = [0].pack("I")
    MALLCTL.call("opt.narenas", COUNT, [COUNT.size].pack("J"), nil, 0)
    run ->(_env) { [200, {}, ["\#{COUNT.unpack1("I")} \#{ENV["MALLOC_CONF"].inspect}"]] }
  RUBY
  OWN = '["", nil] [] ["/", "0"]'

  def test_the_application_has_it_and_its_children_do_not
    library = Pando::Server::Jemalloc.newest
    skip "there is no jemalloc that is safe" unless library&.safe?
    server = serve(app: APP, config: SETTINGS, env: { "LD_PRELOAD" => "", **without_own_variables })
    loaded = server.wait_past("allocator.loaded")

    assert_equal ["jemalloc", "#{library.version}-"], [loaded["name"], loaded["version"][/\A[\d.]+-/]]
    assert_includes status(server), "allocator: #{library.path}\n"
    assert_looks(server, "jemalloc #{OWN}")
    server.refork
    assert_looks(server, "jemalloc #{OWN}")
    reload_with(server, "allocator :glibc\n")
    assert_looks(server, "glibc #{OWN}")
    # As soon as the old mold is gone.
    wait_until(message: -> { status(server) }) { !status(server).include?("allocator") }
  end

  # As in Rails' own image.
  def test_one_that_the_user_preloads_gets_its_options
    library = Pando::Server::Jemalloc.newest
    skip "there is no jemalloc that is safe" unless library&.safe?
    server = serve(app: ARENAS, config: SETTINGS, env: { "LD_PRELOAD" => library.path, **without_own_variables })

    assert_equal "2 nil", server.get("/").body
  end

  private

  # Those that this test run was started with.
  def without_own_variables = ENV.keys.grep(/\APANDO_/).to_h { |name| [name, nil] }

  # When the application was loaded, and in a worker.
  def assert_looks(server, seen) = assert_equal([seen] * 2, server.get("/").body.split("\n"))

  def reload_with(server, line)
    server.write("pando.rb", "log_format :json; rollout canary: false\n#{SETTINGS}#{line}")
    server.wait_for("reload.finished", "reload.failed") { server.signal("HUP") }
    # In direct mode the old worker may take one more connection; behind the reactor it may not have left yet.
    server.wait_past("worker.exited", generation: 1)
  end

  def status(server)
    Open3.capture2(*Support::Checkout.pando("status", "--control", File.join(server.folder, "control.sock"))).first
  end
end
