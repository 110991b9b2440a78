-- oi_stream.vhd: tensors as AXI streams, one element a beat, in row-major order.
library ieee;
use ieee.std_logic_1164.all;
use ieee.numeric_std.all;

-- A stream into memory. `full` says that a whole tensor has arrived; `take` empties it.
entity oi_stream_in is
  generic (
    depth     : positive;
    width     : positive;
    addr_bits : positive
  );
  port (
    clk    : in  std_logic;
    rst    : in  std_logic;
    tdata  : in  std_logic_vector(width - 1 downto 0);
    tvalid : in  std_logic;
    tready : out std_logic := '0';
    take   : in  std_logic;
    full   : out std_logic := '0';
    we     : out std_logic := '0';
    waddr  : out unsigned(addr_bits - 1 downto 0) := (others => '0');
    wdata  : out std_logic_vector(width - 1 downto 0) := (others => '0')
  );
end entity;

architecture rtl of oi_stream_in is
  signal at      : unsigned(addr_bits - 1 downto 0) := (others => '0');
  signal is_full : std_logic := '0';
begin
  tready <= not is_full;
  full   <= is_full;
  we     <= tvalid and not is_full;
  waddr  <= at;
  wdata  <= tdata;

  process (clk)
  begin
    if rising_edge(clk) then
      if rst = '1' then
        at      <= (others => '0');
        is_full <= '0';
      elsif is_full = '1' then
        is_full <= not take;
      elsif tvalid = '1' then
        if at = depth - 1 then
          at      <= (others => '0');
          is_full <= '1';
        else
          at <= at + 1;
        end if;
      end if;
    end if;
  end process;
end architecture;

library ieee;
use ieee.std_logic_1164.all;
use ieee.numeric_std.all;

-- Memory as a stream. `send` starts it; it is busy until the last element was taken.
entity oi_stream_out is
  generic (
    depth     : positive;
    width     : positive;
    addr_bits : positive
  );
  port (
    clk    : in  std_logic;
    rst    : in  std_logic;
    send   : in  std_logic;
    busy   : out std_logic := '0';
    raddr  : out unsigned(addr_bits - 1 downto 0) := (others => '0');
    rdata  : in  std_logic_vector(width - 1 downto 0);
    tdata  : out std_logic_vector(width - 1 downto 0) := (others => '0');
    tvalid : out std_logic := '0';
    tlast  : out std_logic := '0';
    tready : in  std_logic
  );
end entity;

architecture rtl of oi_stream_out is
  type state_t is (idle, reading, sending);
  signal state : state_t := idle;
  signal at    : unsigned(addr_bits - 1 downto 0) := (others => '0');
  signal ahead : unsigned(addr_bits - 1 downto 0) := (others => '0');
begin
  -- the address runs one element ahead of the beat, as memory answers a clock later
  ahead  <= at + 1 when state = sending and tready = '1' and at /= depth - 1 else at;
  raddr  <= ahead when state /= idle else (others => '0');
  busy   <= '0' when state = idle else '1';
  tdata  <= rdata;
  tvalid <= '1' when state = sending else '0';
  tlast  <= '1' when at = depth - 1 else '0';

  process (clk)
  begin
    if rising_edge(clk) then
      if rst = '1' then
        state <= idle;
        at    <= (others => '0');
      else
        if state = idle then
          at <= (others => '0');
          if send = '1' then
            state <= reading;
          end if;
        elsif state = reading then
          state <= sending;
        elsif tready = '1' then
          at <= ahead;
          if at = depth - 1 then
            state <= idle;
          end if;
        end if;
      end if;
    end if;
  end process;
end architecture;
