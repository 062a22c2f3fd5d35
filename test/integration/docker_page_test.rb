# frozen_string_literal: true

require "test_helper"
require "json"
require "open3"
require "support/ports"
require "support/servers"

# Promise: an image can be built and checked as docs/containers.md says.
class DockerPageTest < Minitest::Test
  include Support::Ports
  include Support::Servers

  PAGE = File.read(Support::Checkout.path("docs/containers.md"))
  BLOCKS = PAGE.scan(/^```dockerfile\n(.*?)^```/m).flatten.freeze

  # The official slim images have none.
  def test_gems_are_installed_where_there_is_a_compiler
    build, final = BLOCKS.first.split(/^(?=FROM )/).reject(&:empty?)

    assert_match(/^RUN .*\binstall\b.* build-essential$.*^RUN bundle install$/m, build)
    assert_equal(["RUN apt-get update && apt-get install --no-install-recommends -y libjemalloc2 " \
                  "&& rm -rf /var/lib/apt/lists/*"], final.scan(/^RUN .*/), "it needs no compiler")
    assert_match(%r{^COPY --from=#{build[/ AS (\w+)$/, 1]} /usr/local/bundle /usr/local/bundle$}, final)
  end

  # It needs nothing that the image lacks.
  def test_the_health_check
    port = free_port
    server = serve(config: 'health "/readyz", live: "/livez"', listen: "127.0.0.1:#{port}")
    command = JSON.parse(BLOCKS.join[/^HEALTHCHECK CMD (\[.*\])$/, 1])
    assert_equal "ruby", command.shift
    check = -> { Open3.capture2e(RbConfig.ruby, *command.map { |word| word.sub(":8080/", ":#{port}/") }).last }

    assert_predicate check.call, :success?
    server.stop
    assert_equal 1, check.call.exitstatus
  end
end
